// What tests of sessions share: a cache with sessions, requests of one, and two turns.
#pragma once

#include <string>
#include <utility>

#include "kv/cache_fixture.h"

namespace pagoda::kv {

inline constexpr std::int64_t kSessionSecond = 1'000'000'000;
inline constexpr std::uint64_t kFirstTurn = 12;  // tokens: a system prompt of 8 and a question of 4

inline CacheOptions with_sessions(std::uint32_t blocks) {
  CacheOptions options = CacheFixture::small(blocks);
  options.sessions = true;
  options.eviction_records_max = 100;
  return options;
}

inline CacheScope session(CacheFixture& fixture, std::string key, std::string_view salt = "") {
  CacheScope scope = fixture.scope("model", salt);
  scope.session = std::move(key);
  scope.first_turn_tokens = kFirstTurn;
  return scope;
}

inline std::uint64_t superseded(CacheFixture& fixture) {
  return fixture.cache().sessions().nodes_superseded();
}

inline std::uint64_t demote(CacheFixture& fixture, const CacheScope& scope, const Tokens& prompt) {
  Cache& cache = fixture.cache();
  const std::uint64_t nodes =
      cache.demote(scope, cache.match(scope, prompt, MatchEnd::kWholeBlock));
  cache.check();
  return nodes;
}

// Serves a prompt and has all of its whole blocks retained.
inline void serve_and_keep(CacheFixture& fixture, const CacheScope& scope, const Tokens& prompt) {
  Sequence sequence = fixture.run(scope, prompt);
  const RetainTerms terms = {.tokens = prompt.size(), .until_ns = kSessionSecond, .priority = 1};
  ASSERT_TRUE(fixture.cache().retain(sequence, terms).ok());
  fixture.cache().check();
}

// A conversation of 24 tokens, and its next turn, which leaves it after 16.
inline const Tokens kTurn = counting(1, 24);
inline const Tokens kNextTurn = counting(1, 16) + counting(500, 8);

}  // namespace pagoda::kv

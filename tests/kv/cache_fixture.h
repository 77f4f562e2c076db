// What tests of the cache do again and again: ask, open, feed, close.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <variant>
#include <vector>

#include "kv/cache.h"

namespace pagoda::kv {

using Tokens = std::vector<TokenId>;

inline Tokens tokens_of(std::initializer_list<std::uint32_t> values) {
  Tokens tokens;
  for (const std::uint32_t value : values) tokens.emplace_back(value);
  return tokens;
}

// first, first + 1, ...
inline Tokens counting(std::uint32_t first, std::uint32_t count) {
  Tokens tokens;
  for (std::uint32_t i = 0; i < count; ++i) tokens.emplace_back(first + i);
  return tokens;
}

inline Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A cache with blocks of 4 tokens where not said otherwise; every call is followed by check().
class CacheFixture {
 public:
  explicit CacheFixture(CacheOptions options) : cache_(options) {}
  static CacheOptions small(std::uint32_t blocks) {
    CacheOptions options;
    options.blocks = blocks;
    options.block_tokens = 4;
    return options;
  }

  Cache& cache() { return cache_; }
  CacheScope scope(std::string_view space, std::string_view salt, std::string_view adapter = {}) {
    return cache_.scope(space, salt, adapter).value();
  }
  CacheScope everyone() { return scope("model", ""); }
  CacheScope tenant(std::string_view salt, std::uint64_t public_tokens = 0) {
    CacheScope scope = this->scope("model", salt);
    scope.public_tokens = public_tokens;
    return scope;
  }

  std::uint64_t matched(const CacheScope& scope, const Tokens& prompt) {
    return cache_.match(scope, prompt).tokens;
  }
  std::uint64_t matched(const Tokens& prompt) { return matched(everyone(), prompt); }

  Explanation explain(const CacheScope& scope, const Tokens& prompt) {
    return cache_.explain(scope, prompt, cache_.match(scope, prompt));
  }

  // Opens a request with what the cache has of the prompt; copies are done at once.
  Sequence open(const CacheScope& scope, const Tokens& prompt) {
    auto outcome = cache_.open(scope, cache_.match(scope, prompt), prompt);
    cache_.check();
    Opened& opened = std::get<Opened>(outcome);
    finish(opened.copies);
    return std::move(opened.sequence);
  }
  Sequence open(const Tokens& prompt) { return open(everyone(), prompt); }

  // Computes more tokens. False when there is no room; then nothing changed.
  bool feed(Sequence& sequence, const Tokens& tokens) {
    auto room = cache_.reserve(sequence, sequence.tokens_computed() + tokens.size());
    cache_.check();
    if (std::holds_alternative<OutOfBlocks>(room)) return false;
    finish(std::get<std::vector<Copy>>(room));
    cache_.commit(sequence, tokens);
    cache_.check();
    return true;
  }

  // A request that is opened, computes all of its prompt and goes on running.
  Sequence run(const CacheScope& scope, const Tokens& prompt) {
    Sequence sequence = open(scope, prompt);
    const auto done = static_cast<std::ptrdiff_t>(sequence.tokens_computed());
    EXPECT_TRUE(feed(sequence, Tokens(prompt.begin() + done, prompt.end())));
    return sequence;
  }
  Sequence run(const Tokens& prompt) { return run(everyone(), prompt); }

  // ... and ends.
  void serve(const CacheScope& scope, const Tokens& prompt) {
    Sequence sequence = run(scope, prompt);
    cache_.close(sequence);
    cache_.check();
  }
  void serve(const Tokens& prompt) { serve(everyone(), prompt); }

  void finish(const std::vector<Copy>& copies) {
    for (const Copy& copy : copies) cache_.copied(copy);
    cache_.check();
  }

 private:
  Cache cache_;
};

}  // namespace pagoda::kv

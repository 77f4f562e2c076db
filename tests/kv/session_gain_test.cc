// What sessions are worth, counted: the agents of `pagoda bench agents` take turns in a cache that
// is too small for all of them, with session keys and without. Nothing here depends on time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kv/session_fixture.h"

namespace pagoda::kv {
namespace {

constexpr std::uint32_t kAgents = 4;
constexpr std::uint32_t kTurns = 40;
constexpr std::uint32_t kMainTokens = 5000;
constexpr std::uint32_t kSubTokens = 1250;
constexpr std::uint32_t kResultTokens = 24;
constexpr std::uint32_t kNoteTokens = 32;
constexpr std::uint32_t kOutputTokens = 16;
constexpr std::uint32_t kTemplateTokens = 5;  // behind a message

struct AgentsCase {
  double kv_factor = 1.5;  // the cache, in prompts of the main agent
  // The order of turns: one agent after the other, or drawn by a seed.
  std::optional<std::uint64_t> seed = {};
};

class AgentsRun {
 public:
  AgentsRun(const AgentsCase& one, bool has_keys)
      : one_(one), has_keys_(has_keys), fixture_(options_of(one)) {
    for (std::uint32_t agent = 0; agent < kAgents; ++agent) {
      history_[agent] = fresh(agent == 0 ? kMainTokens : kSubTokens);
    }
  }

  // Returns the prompt tokens that are computed.
  std::uint64_t run() {
    std::mt19937_64 random(one_.seed.value_or(0));
    std::array<std::uint32_t, kAgents> turns = {};
    for (std::uint32_t i = 0; i < kAgents * kTurns; ++i) {
      auto agent = static_cast<std::uint32_t>((one_.seed ? random() : i) % kAgents);
      while (turns[agent] == kTurns) agent = (agent + 1) % kAgents;
      take_turn(agent);
      ++turns[agent];
    }
    return tokens_computed_;
  }

  std::uint64_t blocks_superseded() {
    const auto cause = static_cast<std::size_t>(EvictionCause::kSuperseded);
    return fixture_.cache().stats().blocks_evicted_by_cause[cause];
  }

 private:
  static CacheOptions options_of(const AgentsCase& one) {
    CacheOptions options;
    options.blocks = static_cast<std::uint32_t>(one.kv_factor * kMainTokens) / options.block_tokens;
    options.sessions = true;
    return options;
  }

  Tokens fresh(std::uint32_t count) {
    next_ += count;
    return counting(next_ - count, count);
  }

  // A prompt is the history, a tool's result and a note, which is in no later prompt.
  void take_turn(std::uint32_t agent) {
    Tokens& history = history_[agent];
    history = history + fresh(kResultTokens);
    if (first_turn_[agent] == 0) first_turn_[agent] = history.size() + kTemplateTokens;
    const Tokens prompt = history + fresh(kNoteTokens + kTemplateTokens);
    CacheScope scope = fixture_.everyone();
    if (has_keys_) scope.session = std::to_string(agent);
    scope.first_turn_tokens = first_turn_[agent];
    tokens_computed_ += prompt.size() - fixture_.matched(scope, prompt);
    Sequence sequence = fixture_.run(scope, prompt);
    const Tokens output = fresh(kOutputTokens);
    EXPECT_TRUE(fixture_.feed(sequence, output));
    fixture_.cache().close(sequence);
    history = history + fresh(kTemplateTokens) + output + fresh(kTemplateTokens);
  }

  AgentsCase one_;
  bool has_keys_;
  CacheFixture fixture_;
  std::array<Tokens, kAgents> history_;
  std::array<std::uint64_t, kAgents> first_turn_ = {};
  std::uint32_t next_ = 1;
  std::uint64_t tokens_computed_ = 0;
};

// Where agents strictly alternate, what a turn left behind was used longest ago when its agent
// comes back: it is the first to go in any case.
TEST(SessionGain, IsNothingWhereLruEvictsTheSameBlocks) {
  for (const double kv_factor : {1.5, 2.0, 3.0}) {
    const AgentsCase one = {.kv_factor = kv_factor};
    const auto with = static_cast<double>(AgentsRun(one, true).run());
    const auto without = static_cast<double>(AgentsRun(one, false).run());
    EXPECT_NEAR(with / without, 1, 0.005) << kv_factor;
  }
}

// An agent with several turns in a row leaves tails that are younger than others' prompts.
TEST(SessionGain, IsWhatAgentsLeaveBehindWhereTheyComeInAnyOrder) {
  for (const double kv_factor : {1.5, 2.0, 2.5}) {
    std::uint64_t with = 0;
    std::uint64_t without = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      AgentsRun keyed({.kv_factor = kv_factor, .seed = seed}, true);
      with += keyed.run();
      EXPECT_GT(keyed.blocks_superseded(), 100u) << kv_factor;
      AgentsRun plain({.kv_factor = kv_factor, .seed = seed}, false);
      without += plain.run();
      EXPECT_EQ(plain.blocks_superseded(), 0u);
    }
    const double most = kv_factor < 2 ? 0.99 : kv_factor < 2.5 ? 0.97 : 0.94;
    EXPECT_LT(static_cast<double>(with), most * static_cast<double>(without)) << kv_factor;
  }
}

}  // namespace
}  // namespace pagoda::kv

// These tests measure how much a tenant that floods the server delays another tenant, in tokens
// computed until the other tenant's first output token (TTFT in tokens).
#include <gtest/gtest.h>

#include "sched/scheduler_fixture.h"

namespace pagoda::sched {
namespace {

struct Flood {
  std::uint32_t requests;
  std::uint64_t prompt_tokens;
  std::uint64_t output_tokens;
};

class Neighbour : public testing::Test {
 protected:
  explicit Neighbour(std::uint32_t sequences = 16, std::uint32_t blocks = 200'000)
      : fixture_({.scheduler = defaults(sequences), .blocks = blocks, .block_tokens = 16}),
        noisy_(fixture_.tenants.add("noisy", {})),
        quiet_(fixture_.tenants.add("quiet", {})) {}

  static SchedulerOptions defaults(std::uint32_t sequences) {
    SchedulerOptions options;
    options.sequences_max = sequences;
    return options;
  }

  void flood(const Flood& flood) {
    while (fixture_.tenants[noisy_].sequences_running + fixture_.tenants[noisy_].requests_queued <
           flood.requests) {
      fixture_.add(flood.prompt_tokens, flood.output_tokens, std::nullopt, noisy_);
    }
  }

  // Returns the tokens computed until a new prompt has its first output token, with those of the
  // step that runs when the prompt arrives.
  std::uint64_t tokens_to_first_token(std::uint64_t prompt_tokens, const Flood& noise) {
    flood(noise);
    std::uint64_t tokens = tokens_in(fixture_.step());
    const SequenceTask& asked = fixture_.add(prompt_tokens, 2, std::nullopt, quiet_);
    while (asked.tokens.size() == prompt_tokens) {
      flood(noise);
      tokens += tokens_in(fixture_.step());
    }
    fixture_.steps_until_finished(asked);
    return tokens;
  }

  static std::uint64_t tokens_in(const std::vector<ScheduledChunk>& step) {
    std::uint64_t tokens = 0;
    for (const ScheduledChunk& planned : step) tokens += planned.tokens;
    return tokens;
  }

  SchedulerFixture fixture_;
  TenantId noisy_;
  TenantId quiet_;
};

// A prompt that runs alone costs its own tokens.
TEST_F(Neighbour, AQuestionTakesLessThanTwiceAsLongBesideAFloodOfLongPrompts) {
  constexpr Flood kNoise = {.requests = 8, .prompt_tokens = 1200, .output_tokens = 4};
  tokens_to_first_token(300, kNoise);  // the quiet tenant is active from here on
  for (const std::uint64_t tokens : {100, 150, 300, 700, 1200}) {
    for (int round = 0; round < 5; ++round) {
      EXPECT_LT(tokens_to_first_token(tokens, kNoise), 2 * tokens) << "round " << round;
    }
  }
}

TEST_F(Neighbour, AFloodThatFillsEverySlotLeavesOneToOthers) {
  constexpr Flood kNoise = {.requests = 100, .prompt_tokens = 40, .output_tokens = 5000};
  tokens_to_first_token(300, kNoise);
  for (int i = 0; i < 100; ++i) fixture_.step();
  for (int round = 0; round < 20; ++round) {
    EXPECT_LT(tokens_to_first_token(300, kNoise), 2 * 300u) << "round " << round;
    EXPECT_EQ(fixture_.tenants[noisy_].sequences_running, 15u);
  }
}

// The second sequence waits for the prefix that the first one computes, and then gets its share of
// tokens like any other.
TEST_F(Neighbour, WhoWaitedForAPrefixIsNotForgottenBesideAFlood) {
  constexpr Flood kNoise = {.requests = 8, .prompt_tokens = 1200, .output_tokens = 4};
  tokens_to_first_token(300, kNoise);
  const SequenceTask& first = fixture_.add(300, 2, 7, quiet_);
  const SequenceTask& second = fixture_.add(300, 2, 7, quiet_);
  while (first.state != TaskState::kFinished) {
    flood(kNoise);
    fixture_.step();
  }
  EXPECT_LE(fixture_.steps_until_finished(second), 4u);
}

class SmallPool : public Neighbour {
 protected:
  SmallPool() : Neighbour(64, 400) {}
};

TEST_F(SmallPool, AFloodThatFillsTheCacheLeavesRoomToOthersAndIsPreemptedBeforeThem) {
  constexpr Flood kNoise = {.requests = 64, .prompt_tokens = 600, .output_tokens = 100};
  tokens_to_first_token(300, kNoise);
  for (int round = 0; round < 20; ++round) {
    EXPECT_LT(tokens_to_first_token(300, kNoise), 2 * 300u) << "round " << round;
  }
}

// Who comes for the first time finds every slot taken by answers that are far from their end.
TEST_F(Neighbour, ATenantThatWasAwayDoesNotWaitForAnAnswerToEnd) {
  constexpr Flood kNoise = {.requests = 200, .prompt_tokens = 20, .output_tokens = 10'000};
  flood(kNoise);
  for (int i = 0; i < 50; ++i) fixture_.step();
  EXPECT_LT(tokens_to_first_token(300, kNoise), 2 * 300u);
}

// Without the guaranteed share, a tenant that sends one short prompt after another would get every
// token.
TEST_F(Neighbour, TheFloodIsSureOfAQuarterOfItsShare) {
  constexpr Flood kNoise = {.requests = 8, .prompt_tokens = 1200, .output_tokens = 1};
  tokens_to_first_token(300, kNoise);
  const std::uint64_t noisy = fixture_.tenants[noisy_].tokens_computed;
  const std::uint64_t quiet = fixture_.tenants[quiet_].tokens_computed;
  const SequenceTask* asked = nullptr;
  for (int i = 0; i < 2000; ++i) {
    flood(kNoise);
    if (asked == nullptr || asked->state == TaskState::kFinished) {
      asked = &fixture_.add(300, 1, std::nullopt, quiet_);
    }
    fixture_.step();
  }
  const auto of_noisy = static_cast<double>(fixture_.tenants[noisy_].tokens_computed - noisy);
  const auto of_quiet = static_cast<double>(fixture_.tenants[quiet_].tokens_computed - quiet);
  EXPECT_GE(of_noisy, 0.12 * (of_noisy + of_quiet));
}

TEST_F(Neighbour, WhoHasBeenAwayForLongShortensNoSteps) {
  SchedulerOptions options = defaults(16);
  options.inactive_steps = 50;
  SchedulerFixture fixture({.scheduler = options, .blocks = 200'000, .block_tokens = 16});
  const TenantId quiet = fixture.tenants.add("quiet", {});
  fixture.steps_until_finished(fixture.add(10, 1, std::nullopt, quiet));
  fixture.add(100'000, 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(tokens_in(fixture.step()), options.shared_step_tokens);
  for (int i = 0; i < 50; ++i) fixture.step();
  EXPECT_EQ(tokens_in(fixture.step()), options.batched_tokens_max);
}

}  // namespace
}  // namespace pagoda::sched

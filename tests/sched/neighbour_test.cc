// What a tenant that floods costs another, counted in rows that are computed until the other has
// its first token.
#include <gtest/gtest.h>

#include "sched/scheduler_desk.h"

namespace pagoda::sched {
namespace {

struct Flood {
  std::uint32_t requests;
  std::uint64_t prompt_tokens;
  std::uint64_t answer_tokens;
};

class Neighbour : public testing::Test {
 protected:
  explicit Neighbour(std::uint32_t sequences = 16, std::uint32_t blocks = 200'000)
      : desk_({.scheduler = defaults(sequences), .blocks = blocks, .block_tokens = 16}),
        noisy_(desk_.tenants.add("noisy", {})),
        quiet_(desk_.tenants.add("quiet", {})) {}

  static SchedulerOptions defaults(std::uint32_t sequences) {
    SchedulerOptions options;
    options.sequences_max = sequences;
    return options;
  }

  void flood(const Flood& flood) {
    while (desk_.tenants[noisy_].answers_running + desk_.tenants[noisy_].requests_queued <
           flood.requests) {
      desk_.add(flood.prompt_tokens, flood.answer_tokens, std::nullopt, noisy_);
    }
  }

  // Rows until a question has its first token, and those of the step that runs when it comes.
  std::uint64_t rows_to_first_token(std::uint64_t prompt_tokens, const Flood& noise) {
    flood(noise);
    std::uint64_t rows = rows_in(desk_.step());
    const Task& asked = desk_.add(prompt_tokens, 2, std::nullopt, quiet_);
    while (asked.tokens.size() == prompt_tokens) {
      flood(noise);
      rows += rows_in(desk_.step());
    }
    desk_.steps_until_finished(asked);
    return rows;
  }

  static std::uint64_t rows_in(const std::vector<PlannedRows>& step) {
    std::uint64_t rows = 0;
    for (const PlannedRows& planned : step) rows += planned.rows;
    return rows;
  }

  SchedulerDesk desk_;
  TenantId noisy_;
  TenantId quiet_;
};

// Alone a question costs its own rows.
TEST_F(Neighbour, AQuestionTakesLessThanTwiceAsLongBesideAFloodOfLongPrompts) {
  constexpr Flood kNoise = {.requests = 8, .prompt_tokens = 1200, .answer_tokens = 4};
  rows_to_first_token(300, kNoise);  // from now on it is about
  for (const std::uint64_t tokens : {100, 150, 300, 700, 1200}) {
    for (int round = 0; round < 5; ++round) {
      EXPECT_LT(rows_to_first_token(tokens, kNoise), 2 * tokens) << "round " << round;
    }
  }
}

TEST_F(Neighbour, AFloodThatFillsEveryPlaceLeavesOneToOthers) {
  constexpr Flood kNoise = {.requests = 100, .prompt_tokens = 40, .answer_tokens = 5000};
  rows_to_first_token(300, kNoise);
  for (int i = 0; i < 100; ++i) desk_.step();
  for (int round = 0; round < 20; ++round) {
    EXPECT_LT(rows_to_first_token(300, kNoise), 2 * 300u) << "round " << round;
    EXPECT_EQ(desk_.tenants[noisy_].answers_running, 15u);
  }
}

// The second waits for the prefix that the first computes; then it has its rows like anybody.
TEST_F(Neighbour, WhoWaitedForAPrefixIsNotForgottenBesideAFlood) {
  constexpr Flood kNoise = {.requests = 8, .prompt_tokens = 1200, .answer_tokens = 4};
  rows_to_first_token(300, kNoise);
  const Task& first = desk_.add(300, 2, 7, quiet_);
  const Task& second = desk_.add(300, 2, 7, quiet_);
  while (first.state != TaskState::kFinished) {
    flood(kNoise);
    desk_.step();
  }
  EXPECT_LE(desk_.steps_until_finished(second), 4u);
}

class SmallPool : public Neighbour {
 protected:
  SmallPool() : Neighbour(64, 400) {}
};

TEST_F(SmallPool, AFloodThatFillsTheCacheLeavesRoomToOthersAndIsPreemptedBeforeThem) {
  constexpr Flood kNoise = {.requests = 64, .prompt_tokens = 600, .answer_tokens = 100};
  rows_to_first_token(300, kNoise);
  for (int round = 0; round < 20; ++round) {
    EXPECT_LT(rows_to_first_token(300, kNoise), 2 * 300u) << "round " << round;
  }
}

// The one that asks one thing after the other would have everything for ever.
TEST_F(Neighbour, TheFloodIsSureOfAQuarterOfItsShare) {
  constexpr Flood kNoise = {.requests = 8, .prompt_tokens = 1200, .answer_tokens = 1};
  rows_to_first_token(300, kNoise);
  const std::uint64_t noisy = desk_.tenants[noisy_].rows_computed;
  const std::uint64_t quiet = desk_.tenants[quiet_].rows_computed;
  const Task* asked = nullptr;
  for (int i = 0; i < 2000; ++i) {
    flood(kNoise);
    if (asked == nullptr || asked->state == TaskState::kFinished) {
      asked = &desk_.add(300, 1, std::nullopt, quiet_);
    }
    desk_.step();
  }
  const auto of_noisy = static_cast<double>(desk_.tenants[noisy_].rows_computed - noisy);
  const auto of_quiet = static_cast<double>(desk_.tenants[quiet_].rows_computed - quiet);
  EXPECT_GE(of_noisy, 0.12 * (of_noisy + of_quiet));
}

TEST_F(Neighbour, WhoHasBeenAwayForLongShortensNoSteps) {
  SchedulerOptions options = defaults(16);
  options.absence_steps = 50;
  SchedulerDesk desk({.scheduler = options, .blocks = 200'000, .block_tokens = 16});
  const TenantId quiet = desk.tenants.add("quiet", {});
  desk.steps_until_finished(desk.add(10, 1, std::nullopt, quiet));
  desk.add(100'000, 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rows_in(desk.step()), options.shared_step_tokens);
  for (int i = 0; i < 50; ++i) desk.step();
  EXPECT_EQ(rows_in(desk.step()), options.batched_tokens_max);
}

}  // namespace
}  // namespace pagoda::sched

#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "sched/scheduler_desk.h"

namespace pagoda::sched {
namespace {

SchedulerOptions options(std::uint32_t sequences, std::uint32_t rows) {
  SchedulerOptions options;
  options.sequences_max = sequences;
  options.batched_tokens_max = rows;
  options.shared_step_tokens = rows;
  return options;
}

TEST(Scheduler, ALongPromptNeverStallsARunningAnswer) {
  SchedulerDesk desk({.scheduler = options(4, 8)});
  Task& answer = desk.add(2, 50);
  desk.step();
  Task& prompt = desk.add(200, 1);
  std::uint64_t steps = 0;
  while (prompt.tokens_computed() < 200 && prompt.state != TaskState::kFinished) {
    const auto rows = desk.step();
    EXPECT_EQ(SchedulerDesk::rows_of(rows, answer), answer.state == TaskState::kFinished ? 0u : 1u);
    EXPECT_LE(SchedulerDesk::rows_of(rows, prompt), 7u);
    ++steps;
  }
  EXPECT_EQ(steps, (200 + 6) / 7u);
}

TEST(Scheduler, ALongPrefillThresholdLeavesRowsForOthers) {
  SchedulerOptions limited = options(4, 64);
  limited.long_prefill_tokens = 16;
  SchedulerDesk desk({.scheduler = limited});
  Task& huge = desk.add(500, 1);
  Task& small = desk.add(20, 1);
  const auto rows = desk.step();
  EXPECT_EQ(SchedulerDesk::rows_of(rows, huge), 16u);
  EXPECT_EQ(SchedulerDesk::rows_of(rows, small), 16u);
}

TEST(Scheduler, IdenticalPromptsCostOnePrefill) {
  SchedulerDesk desk({.scheduler = options(8, 64)});
  std::vector<Task*> tasks;
  for (int i = 0; i < 8; ++i) tasks.push_back(&desk.add(100, 4, 7));
  for (Task* const task : tasks) desk.steps_until_finished(*task);
  std::uint64_t computed = 0;
  for (const Task* const task : tasks) computed += task->prompt_rows_computed;
  // All but the first compute the prompt's last token only.
  EXPECT_EQ(computed, 100u + 7u);
}

TEST(Scheduler, WaitingForAPrefixIsBounded) {
  SchedulerOptions bounded = options(8, 9);
  bounded.prefix_waits_max = 3;
  bounded.long_prefill_tokens = 4;
  SchedulerDesk desk({.scheduler = bounded});
  Task& first = desk.add(1000, 1, 7);
  Task& second = desk.add(1000, 1, 7);
  for (int i = 0; i < 6; ++i) desk.step();
  EXPECT_EQ(first.state, TaskState::kRunning);
  EXPECT_EQ(second.state, TaskState::kRunning);
}

TEST(Scheduler, AnUrgentTaskWaitsForNoPrefixOfALessUrgentOne) {
  SchedulerOptions chunked = options(4, 32);
  chunked.long_prefill_tokens = 8;
  SchedulerDesk desk({.scheduler = chunked});
  desk.add(100, 1, 7);
  desk.step();
  Task& equal = desk.add(100, 1, 7, TenantId(0), 0);
  Task& urgent = desk.add(100, 1, 7, TenantId(0), -1);
  desk.step();
  EXPECT_EQ(urgent.state, TaskState::kRunning);
  EXPECT_EQ(equal.waits_for, WaitReason::kPrefix);
}

TEST(Scheduler, ATaskThatDoesNotFitLetsSmallerOnesPassButNotForEver) {
  SchedulerOptions aging = options(8, 100);
  aging.passes_max = 5;
  SchedulerDesk desk({.scheduler = aging, .blocks = 20});
  Task& running = desk.add(40, 30);  // 10 blocks, and more to come
  desk.step();
  Task& large = desk.add(60, 1);  // 15 blocks: not beside the first
  std::vector<Task*> small;
  for (int i = 0; i < 12; ++i) small.push_back(&desk.add(4, 2));
  std::uint64_t passed = 0;
  while (large.state == TaskState::kWaiting) {
    passed = 0;
    for (const Task* const task : small) passed += task->state != TaskState::kWaiting ? 1 : 0;
    ASSERT_FALSE(desk.step().empty());
  }
  EXPECT_GT(passed, 0u);
  EXPECT_LE(passed, 5u) << "nobody passes a task whose turn has come";
  EXPECT_EQ(running.state, TaskState::kFinished);
}

TEST(Scheduler, ALoadGetsTheRoomOfItsTasksTurnAndNobodyBehindTakesIt) {
  SchedulerDesk desk({.scheduler = options(8, 100), .blocks = 20});
  Task& running = desk.add(40, 10);  // 10 blocks, 3 more to come
  desk.step();
  Task& loading = desk.add(44, 1);  // 11 blocks: when the first has ended
  loading.load_wants_room = true;
  Task& behind = desk.add(40, 1);
  while (running.state != TaskState::kFinished) {
    EXPECT_FALSE(loading.load_has_room) << "it does not fit yet";
    desk.step();
  }
  EXPECT_TRUE(desk.step().empty());
  EXPECT_TRUE(loading.load_has_room);
  EXPECT_EQ(loading.waits_for, WaitReason::kLoad);
  EXPECT_EQ(behind.state, TaskState::kWaiting);
  loading.load_wants_room = false;  // it has come
  EXPECT_EQ(SchedulerDesk::rows_of(desk.step(), loading), 44u);
}

TEST(Scheduler, TiersAreAskedAgainWhenThePoolHasLessOfATaskAtItsTurn) {
  SchedulerDesk desk({.scheduler = options(8, 100), .blocks = 20});
  desk.add(40, 1, 7);
  while (desk.scheduler().has_work()) desk.step();
  Task& found = desk.add(40, 1, 7);
  found.tokens_seen_in_pool = 36;
  EXPECT_EQ(SchedulerDesk::rows_of(desk.step(), found), 1u) << "the pool has what it had";
  while (desk.scheduler().has_work()) desk.step();
  desk.cache().clear();
  Task& lost = desk.add(40, 1, 7);
  lost.tokens_seen_in_pool = 36;
  EXPECT_TRUE(desk.step().empty());
  EXPECT_TRUE(lost.load_has_room);
  EXPECT_EQ(lost.waits_for, WaitReason::kLoad);
  lost.tokens_seen_in_pool = 0;  // tiers have nothing
  EXPECT_EQ(SchedulerDesk::rows_of(desk.step(), lost), 40u);
}

TEST(Scheduler, PreemptsTheCheapestToLoseAndResumesIt) {
  SchedulerDesk desk({.scheduler = options(4, 100), .blocks = 22});
  Task& old = desk.add(40, 40, std::nullopt, TenantId(0), 0);    // 10 blocks, 20 at its end
  Task& young = desk.add(32, 40, std::nullopt, TenantId(0), 0);  // 8 blocks
  while (young.preemptions == 0 && old.preemptions == 0) desk.step();
  EXPECT_EQ(young.preemptions, 1u) << "fewer computed tokens are lost";
  EXPECT_EQ(old.preemptions, 0u);
  desk.steps_until_finished(old);
  desk.steps_until_finished(young);
  EXPECT_EQ(young.tokens.size(), 72u);
  EXPECT_LT(young.prompt_rows_computed, 64u) << "what stayed in the cache is found again";
}

TEST(Scheduler, OfEqualLossesTheOneWithMostLeftIsPreemptedThenTheLatest) {
  const auto preempts_first = [](std::uint64_t first_answer, std::uint64_t second_answer) {
    SchedulerDesk desk({.scheduler = options(4, 100), .blocks = 22});
    const Task& first = desk.add(36, first_answer);
    const Task& second = desk.add(36, second_answer);
    while (first.preemptions + second.preemptions == 0) desk.step();
    return first.preemptions > 0;
  };
  EXPECT_TRUE(preempts_first(40, 30));
  EXPECT_FALSE(preempts_first(30, 40));
  EXPECT_FALSE(preempts_first(40, 40));
}

// Of 20 blocks the first needs 15, and one more for its answer: 4 are left, whatever it has by now.
TEST(Scheduler, AdmissionLeavesWhatIsPromisedAndNothingMore) {
  SchedulerOptions chunked = options(4, 32);
  chunked.long_prefill_tokens = 8;
  SchedulerDesk desk({.scheduler = chunked, .blocks = 20});
  Task& promised = desk.add(60, 4);
  desk.step();
  Task& too_large = desk.add(20, 1);
  desk.step();
  Task& fits = desk.add(16, 1);
  desk.step();
  EXPECT_EQ(fits.state, TaskState::kRunning);
  EXPECT_EQ(too_large.state, TaskState::kWaiting);
  EXPECT_EQ(too_large.waits_for, WaitReason::kBlocks);
  desk.steps_until_finished(too_large);
  EXPECT_EQ(promised.preemptions + fits.preemptions + too_large.preemptions, 0u);
}

TEST(Scheduler, BlocksOfAnEndedTaskAreReusableOnlyWhenItsLaunchesAreCollected) {
  SchedulerDesk desk({.scheduler = options(4, 8), .blocks = 20, .launches_ahead = 1});
  Scheduler& scheduler = desk.scheduler();
  Task& task = desk.add(16, 4);
  ASSERT_NE(scheduler.reserve(scheduler.plan()), nullptr);
  ASSERT_NE(scheduler.reserve(scheduler.plan()), nullptr);
  scheduler.commit(scheduler.begin_collect().rows.front());
  scheduler.finish(task);
  scheduler.end_collect();
  EXPECT_EQ(desk.cache().blocks_available(), 16u) << "the second launch writes to them";
  EXPECT_FALSE(scheduler.quiet(task));
  scheduler.commit(scheduler.begin_collect().rows.front());
  scheduler.end_collect();
  EXPECT_EQ(desk.cache().blocks_available(), 20u);
  EXPECT_TRUE(scheduler.quiet(task));
}

TEST(Scheduler, PriorityDecidesWhoIsPreempted) {
  SchedulerDesk desk({.scheduler = options(4, 100), .blocks = 22});
  Task& low = desk.add(40, 40, std::nullopt, TenantId(0), 5);
  Task& high = desk.add(32, 40, std::nullopt, TenantId(0), 0);
  while (low.preemptions == 0 && high.preemptions == 0) desk.step();
  EXPECT_EQ(low.preemptions, 1u);
  EXPECT_EQ(high.preemptions, 0u);
}

TEST(Scheduler, LongContextsTakeNoMoreThanTheirShare) {
  SchedulerOptions classes = options(8, 800);
  classes.context_classes = ContextClasses::parse("8:1,max:0.25").value();
  SchedulerDesk desk({.scheduler = classes});
  for (int i = 0; i < 6; ++i) desk.add(50, 20);
  desk.step();
  EXPECT_EQ(desk.scheduler().running().size(), 2u) << "a quarter of 8 sequences";
  Task& small = desk.add(4, 20);
  desk.step();
  EXPECT_EQ(small.state, TaskState::kRunning);
}

TEST(Scheduler, LongContextsTakeNoMoreThanTheirShareOfTheBlocks) {
  SchedulerOptions classes = options(8, 800);
  classes.context_classes = ContextClasses::parse("8:1,max:0.5").value();
  SchedulerDesk desk({.scheduler = classes, .blocks = 40});
  std::vector<Task*> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(&desk.add(32, 4));  // 8 blocks each
  desk.step();
  EXPECT_EQ(desk.scheduler().running().size(), 2u) << "half of 40 blocks";
  for (Task* const task : tasks) desk.steps_until_finished(*task);
  EXPECT_EQ(tasks.back()->state, TaskState::kFinished);
}

TEST(Scheduler, ATenantsLimitsHoldItBackAndNobodyElse) {
  SchedulerDesk desk({.scheduler = options(8, 100)});
  const TenantId narrow = desk.tenants.add("narrow", {.answers_running = 1});
  const TenantId small = desk.tenants.add("small", {.kv_tokens = 30});
  Task& narrow_first = desk.add(4, 20, std::nullopt, narrow);
  Task& narrow_second = desk.add(4, 20, std::nullopt, narrow);
  Task& small_first = desk.add(20, 5, std::nullopt, small);
  Task& small_second = desk.add(20, 5, std::nullopt, small);
  Task& other = desk.add(4, 20);
  desk.step();
  EXPECT_EQ(narrow_first.state, TaskState::kRunning);
  EXPECT_EQ(narrow_second.state, TaskState::kWaiting);
  EXPECT_EQ(narrow_second.waits_for, WaitReason::kTenant);
  EXPECT_EQ(small_first.state, TaskState::kRunning);
  EXPECT_EQ(small_second.state, TaskState::kWaiting);
  EXPECT_EQ(other.state, TaskState::kRunning);
  desk.steps_until_finished(narrow_second);
  desk.steps_until_finished(small_second);
  EXPECT_EQ(small_second.state, TaskState::kFinished);
}

TEST(Scheduler, MoreThanAStepLooksAtHeldBackByALimitHoldBackNobodyElse) {
  SchedulerOptions classes = options(8, 800);
  classes.candidates_max = 4;
  classes.context_classes = ContextClasses::parse("8:1,max:0.25").value();
  SchedulerDesk desk({.scheduler = classes});
  const TenantId narrow = desk.tenants.add("narrow", {.answers_running = 1});
  for (int i = 0; i < 20; ++i) desk.add(4, 20, std::nullopt, narrow);
  for (int i = 0; i < 20; ++i) desk.add(50, 20);
  Task& other = desk.add(4, 20);
  desk.step();
  desk.step();
  EXPECT_EQ(other.state, TaskState::kRunning);
}

TEST(Scheduler, WhatItsTenantHasNoRoomForIsNotPassedForEver) {
  SchedulerDesk desk({.scheduler = options(8, 100)});
  const TenantId tenant = desk.tenants.add("tenant", {.kv_tokens = 40});
  desk.add(4, 10, std::nullopt, tenant);
  desk.step();
  Task& large = desk.add(38, 2, std::nullopt, tenant);
  for (int i = 0; i < 10; ++i) {
    desk.add(4, 10, std::nullopt, tenant);
    desk.step();
  }
  EXPECT_NE(large.state, TaskState::kWaiting);
}

TEST(Scheduler, WhatItsLengthClassHasNoRoomForIsNotPassedForEver) {
  SchedulerOptions classes = options(8, 100);
  classes.context_classes = ContextClasses::parse("8:1,max:0.5").value();
  SchedulerDesk desk({.scheduler = classes, .blocks = 40});  // 20 for long ones
  desk.add(12, 10);
  desk.step();
  Task& large = desk.add(72, 1);
  for (int i = 0; i < 10; ++i) {
    desk.add(12, 10);
    desk.step();
  }
  EXPECT_NE(large.state, TaskState::kWaiting);
}

TEST(Scheduler, BusyTenantsShareRowsByWeight) {
  SchedulerDesk desk({.scheduler = options(4, 16), .blocks = 4000});
  const TenantId light = desk.tenants.add("light", {.weight = 1});
  const TenantId heavy = desk.tenants.add("heavy", {.weight = 3});
  for (int i = 0; i < 200; ++i) {
    desk.add(20, 2, std::nullopt, light);
    desk.add(20, 2, std::nullopt, heavy);
  }
  for (int i = 0; i < 200; ++i) desk.step();
  const auto light_rows = static_cast<double>(desk.tenants[light].rows_computed);
  const auto heavy_rows = static_cast<double>(desk.tenants[heavy].rows_computed);
  EXPECT_NEAR(heavy_rows / light_rows, 3.0, 0.2);
  // While both wait, their clocks stay within what one admission can add.
  EXPECT_LE(std::abs(desk.tenants[light].clock - desk.tenants[heavy].clock), 4 * 22.0);
}

TEST(Scheduler, OneStepAdmitsFromTenantsInTurn) {
  SchedulerDesk desk({.scheduler = options(4, 100)});
  const TenantId late = desk.tenants.add("late", {});
  for (int i = 0; i < 4; ++i) desk.add(10, 20);
  for (int i = 0; i < 4; ++i) desk.add(10, 20, std::nullopt, late);
  desk.step();
  EXPECT_EQ(desk.tenants[TenantId(0)].answers_running, 2u);
  EXPECT_EQ(desk.tenants[late].answers_running, 2u);
}

TEST(Scheduler, PrefillsOfBusyTenantsGetRowsInTurn) {
  SchedulerOptions chunked = options(4, 24);
  chunked.long_prefill_tokens = 16;
  SchedulerDesk desk({.scheduler = chunked});
  const TenantId late = desk.tenants.add("late", {});
  desk.add(800, 1);
  desk.add(800, 1, std::nullopt, late);
  for (int i = 0; i < 20; ++i) desk.step();
  EXPECT_NEAR(desk.tenants[TenantId(0)].clock, desk.tenants[late].clock, 16);
}

// One tenant floods with prompts of 100 steps each; another asks something short now and then.
TEST(Scheduler, ANoisyNeighbourDelaysAShortPromptByAStepAndNoMore) {
  SchedulerDesk desk({.scheduler = options(16, 64), .blocks = 100'000});
  const TenantId noisy = desk.tenants.add("noisy", {});
  const TenantId quiet = desk.tenants.add("quiet", {});
  for (int i = 0; i < 50; ++i) desk.add(6400, 4, std::nullopt, noisy);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 7 * round % 11; ++i) desk.step();
    Task& asked = desk.add(24, 1, std::nullopt, quiet);
    desk.step();  // was on its way already
    EXPECT_LE(desk.steps_until_finished(asked), 2u) << "round " << round;
  }
  const std::uint64_t before = desk.tenants[noisy].rows_computed;
  for (int i = 0; i < 10; ++i) desk.step();
  EXPECT_GE(desk.tenants[noisy].rows_computed - before, 10 * 64u - 8) << "alone it has all rows";
}

TEST(Scheduler, WhatCannotStartHoldsBackNoRows) {
  SchedulerDesk desk({.scheduler = options(16, 64), .blocks = 2000});
  const TenantId noisy = desk.tenants.add("noisy", {});
  const TenantId narrow = desk.tenants.add("narrow", {.kv_tokens = 20});
  Task& running = desk.add(6400, 4, std::nullopt, noisy);
  desk.step();
  desk.add(24, 1, std::nullopt, narrow);
  desk.step();  // looks at it
  desk.step();
  EXPECT_EQ(SchedulerDesk::rows_of(desk.step(), running), 64u);
}

TEST(Scheduler, ARequestForTwoAnswersWaitsForTwoPlaces) {
  SchedulerDesk desk({.scheduler = options(2, 100)});
  Task& single = desk.add(4, 30);
  desk.step();
  Task& pair = desk.add(4, 30);
  pair.answers = 2;  // as asked before it is looked at
  desk.step();
  EXPECT_EQ(pair.state, TaskState::kWaiting) << "two places are needed, one is left";
  EXPECT_EQ(pair.waits_for, WaitReason::kSequences);
  desk.scheduler().finish(single);
  desk.step();
  EXPECT_EQ(pair.state, TaskState::kRunning);
}

TEST(Scheduler, DeadlinesAreFoundInOrderAndOnce) {
  SchedulerDesk desk({.scheduler = options(1, 100)});
  desk.add(4, 20);
  Task& late = desk.add(4, 20, std::nullopt, TenantId(0), 0, 500);
  Task& early = desk.add(4, 20, std::nullopt, TenantId(0), 0, 100);
  desk.step();
  EXPECT_EQ(desk.scheduler().expired(99), nullptr);
  EXPECT_EQ(desk.scheduler().expired(100), &early);
  EXPECT_EQ(desk.scheduler().expired(1000), &early);
  desk.scheduler().finish(early);
  EXPECT_EQ(desk.scheduler().expired(499), nullptr);
  EXPECT_EQ(desk.scheduler().expired(1000), &late);
  desk.scheduler().finish(late);
  EXPECT_EQ(desk.scheduler().expired(1000), nullptr);
}

}  // namespace
}  // namespace pagoda::sched

#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "sched/scheduler_fixture.h"

namespace pagoda::sched {
namespace {

SchedulerOptions options(std::uint32_t sequences, std::uint32_t rows) {
  SchedulerOptions options;
  options.sequences_max = sequences;
  options.batched_tokens_max = rows;
  options.shared_step_tokens = rows;
  return options;
}

TEST(Scheduler, ALongPromptNeverStallsADecodingSequence) {
  SchedulerFixture fixture({.scheduler = options(4, 8)});
  SequenceTask& answer = fixture.add(2, 50);
  fixture.step();
  SequenceTask& prompt = fixture.add(200, 1);
  std::uint64_t steps = 0;
  while (prompt.tokens_computed() < 200 && prompt.state != TaskState::kFinished) {
    const auto chunks = fixture.step();
    EXPECT_EQ(SchedulerFixture::tokens_of(chunks, answer),
              answer.state == TaskState::kFinished ? 0u : 1u);
    EXPECT_LE(SchedulerFixture::tokens_of(chunks, prompt), 7u);
    ++steps;
  }
  EXPECT_EQ(steps, (200 + 6) / 7u);
}

TEST(Scheduler, ALongPrefillThresholdLeavesTokensForOthers) {
  SchedulerOptions limited = options(4, 64);
  limited.long_prefill_tokens = 16;
  SchedulerFixture fixture({.scheduler = limited});
  SequenceTask& huge = fixture.add(500, 1);
  SequenceTask& small = fixture.add(20, 1);
  const auto chunks = fixture.step();
  EXPECT_EQ(SchedulerFixture::tokens_of(chunks, huge), 16u);
  EXPECT_EQ(SchedulerFixture::tokens_of(chunks, small), 16u);
}

// Whoever asks how long it would wait, and how often, costs one walk of the queue a plan.
TEST(Scheduler, TokensBeforeAreLookedUpOnceAPlan) {
  SchedulerFixture fixture({.scheduler = options(1, 64)});
  fixture.steps_until_finished(fixture.add(40, 1, 7));  // cached, of which 39 may be found
  fixture.add(30, 50);
  fixture.step();
  for (int i = 0; i < 100; ++i) fixture.add(40, 1, 7, TenantId(0), i < 90 ? 0 : 3);
  Scheduler& scheduler = fixture.scheduler();
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t urgent = scheduler.tokens_before(0);
    const std::uint64_t all = scheduler.tokens_before(3);
    EXPECT_EQ(scheduler.tokens_before(-1), 0u);
    EXPECT_LT(urgent, all);
    // The prompt of 64 waiting sequences is looked up: 36 tokens of it at least are cached.
    EXPECT_LE(all, 64u * 4 + 36 * 40);
    EXPECT_GE(all, 64u + 36 * 40);
  }
  EXPECT_EQ(scheduler.estimate_lookups(), 64u);
  const std::uint64_t before = scheduler.tokens_before(3);
  fixture.add(25, 1);
  EXPECT_GE(scheduler.tokens_before(3), before) << "who came since is counted";
  EXPECT_EQ(scheduler.estimate_lookups(), 128u);
  fixture.step();
  for (int i = 0; i < 100; ++i) scheduler.tokens_before(0);
  EXPECT_EQ(scheduler.estimate_lookups(), 192u);
}

TEST(Scheduler, IdenticalPromptsCostOnePrefill) {
  SchedulerFixture fixture({.scheduler = options(8, 64)});
  std::vector<SequenceTask*> tasks;
  for (int i = 0; i < 8; ++i) tasks.push_back(&fixture.add(100, 4, 7));
  for (SequenceTask* const task : tasks) fixture.steps_until_finished(*task);
  std::uint64_t computed = 0;
  for (const SequenceTask* const task : tasks) computed += task->prompt_tokens_computed;
  // Every sequence but the first computes only the prompt's last token.
  EXPECT_EQ(computed, 100u + 7u);
}

TEST(Scheduler, APausedTaskIsParkedUntilItsReaderGoesOn) {
  SchedulerFixture fixture({.scheduler = options(1, 64)});
  SequenceTask& slow = fixture.add(20, 8);
  fixture.step();
  slow.paused = true;
  SequenceTask& other = fixture.add(20, 4);
  EXPECT_LE(fixture.steps_until_finished(other, 10), 5u);
  EXPECT_EQ(slow.state, TaskState::kParked);
  EXPECT_EQ(fixture.scheduler().parked().size(), 1u);
  fixture.step();
  EXPECT_EQ(slow.state, TaskState::kParked);
  EXPECT_FALSE(fixture.scheduler().has_work());
  fixture.scheduler().resume(slow);
  fixture.steps_until_finished(slow, 20);
  EXPECT_EQ(slow.state, TaskState::kFinished);
  EXPECT_EQ(slow.tokens.size(), 28u);
  EXPECT_EQ(slow.preemptions, 1u);
}

TEST(Scheduler, AParkedTaskMayEnd) {
  SchedulerFixture fixture({.scheduler = options(1, 64)});
  SequenceTask& slow = fixture.add(20, 8);
  fixture.step();
  slow.paused = true;
  SequenceTask& other = fixture.add(20, 4);
  fixture.step();
  ASSERT_EQ(slow.state, TaskState::kParked);
  fixture.scheduler().finish(slow);
  fixture.steps_until_finished(other, 10);
  EXPECT_EQ(fixture.tenants[TenantId(0)].requests_queued, 0u);
  EXPECT_TRUE(fixture.scheduler().parked().empty());
}

TEST(Scheduler, WaitingForAPrefixIsBounded) {
  SchedulerOptions bounded = options(8, 9);
  bounded.prefix_waits_max = 3;
  bounded.long_prefill_tokens = 4;
  SchedulerFixture fixture({.scheduler = bounded});
  SequenceTask& first = fixture.add(1000, 1, 7);
  SequenceTask& second = fixture.add(1000, 1, 7);
  for (int i = 0; i < 6; ++i) fixture.step();
  EXPECT_EQ(first.state, TaskState::kRunning);
  EXPECT_EQ(second.state, TaskState::kRunning);
}

TEST(Scheduler, AnUrgentTaskWaitsForNoPrefixOfALessUrgentOne) {
  SchedulerOptions chunked = options(4, 32);
  chunked.long_prefill_tokens = 8;
  SchedulerFixture fixture({.scheduler = chunked});
  fixture.add(100, 1, 7);
  fixture.step();
  SequenceTask& equal = fixture.add(100, 1, 7, TenantId(0), 0);
  SequenceTask& urgent = fixture.add(100, 1, 7, TenantId(0), -1);
  fixture.step();
  EXPECT_EQ(urgent.state, TaskState::kRunning);
  EXPECT_EQ(equal.waits_for, WaitReason::kPrefix);
}

TEST(Scheduler, ATaskThatDoesNotFitLetsSmallerOnesPassButNotForEver) {
  SchedulerOptions aging = options(8, 100);
  aging.passes_max = 5;
  SchedulerFixture fixture({.scheduler = aging, .blocks = 20});
  SequenceTask& running = fixture.add(40, 30);  // 10 blocks, and more for the output
  fixture.step();
  SequenceTask& large = fixture.add(60, 1);  // 15 blocks do not fit beside the first
  std::vector<SequenceTask*> small;
  for (int i = 0; i < 12; ++i) small.push_back(&fixture.add(4, 2));
  std::uint64_t passed = 0;
  while (large.state == TaskState::kWaiting) {
    passed = 0;
    for (const SequenceTask* const task : small)
      passed += task->state != TaskState::kWaiting ? 1 : 0;
    ASSERT_FALSE(fixture.step().empty());
  }
  EXPECT_GT(passed, 0u);
  EXPECT_LE(passed, 5u) << "nobody passes a task whose turn has come";
  EXPECT_EQ(running.state, TaskState::kFinished);
}

TEST(Scheduler, ALoadGetsTheRoomOfItsTasksTurnAndNobodyBehindTakesIt) {
  SchedulerFixture fixture({.scheduler = options(8, 100), .blocks = 20});
  SequenceTask& running = fixture.add(40, 10);  // 10 blocks, and 3 more for the output
  fixture.step();
  SequenceTask& loading = fixture.add(44, 1);  // 11 blocks fit when the first has finished
  loading.load_wants_room = true;
  SequenceTask& behind = fixture.add(40, 1);
  while (running.state != TaskState::kFinished) {
    EXPECT_FALSE(loading.load_has_room) << "it does not fit yet";
    fixture.step();
  }
  EXPECT_TRUE(fixture.step().empty());
  EXPECT_TRUE(loading.load_has_room);
  EXPECT_EQ(loading.waits_for, WaitReason::kLoad);
  EXPECT_EQ(behind.state, TaskState::kWaiting);
  loading.load_wants_room = false;  // the load is done
  EXPECT_EQ(SchedulerFixture::tokens_of(fixture.step(), loading), 44u);
}

TEST(Scheduler, TiersAreAskedAgainWhenThePoolHasLessOfATaskAtItsTurn) {
  SchedulerFixture fixture({.scheduler = options(8, 100), .blocks = 20});
  fixture.add(40, 1, 7);
  while (fixture.scheduler().has_work()) fixture.step();
  SequenceTask& found = fixture.add(40, 1, 7);
  found.tokens_seen_in_pool = 36;
  EXPECT_EQ(SchedulerFixture::tokens_of(fixture.step(), found), 1u) << "the pool has what it had";
  while (fixture.scheduler().has_work()) fixture.step();
  fixture.cache().clear();
  SequenceTask& lost = fixture.add(40, 1, 7);
  lost.tokens_seen_in_pool = 36;
  EXPECT_TRUE(fixture.step().empty());
  EXPECT_TRUE(lost.load_has_room);
  EXPECT_EQ(lost.waits_for, WaitReason::kLoad);
  lost.tokens_seen_in_pool = 0;  // the tiers have no page of the prompt
  EXPECT_EQ(SchedulerFixture::tokens_of(fixture.step(), lost), 40u);
}

TEST(Scheduler, PreemptsTheCheapestVictimAndResumesIt) {
  SchedulerFixture fixture({.scheduler = options(4, 100), .blocks = 22});
  SequenceTask& old =
      fixture.add(40, 40, std::nullopt, TenantId(0), 0);  // 10 blocks, 20 at the end
  SequenceTask& young = fixture.add(32, 40, std::nullopt, TenantId(0), 0);  // 8 blocks
  while (young.preemptions == 0 && old.preemptions == 0) fixture.step();
  EXPECT_EQ(young.preemptions, 1u) << "fewer computed tokens are lost";
  EXPECT_EQ(old.preemptions, 0u);
  fixture.steps_until_finished(old);
  fixture.steps_until_finished(young);
  EXPECT_EQ(young.tokens.size(), 72u);
  EXPECT_LT(young.prompt_tokens_computed, 64u) << "what stayed in the cache is found again";
}

TEST(Scheduler, OfEqualLossesTheOneWithMostLeftIsPreemptedThenTheLatest) {
  const auto preempts_first = [](std::uint64_t first_answer, std::uint64_t second_answer) {
    SchedulerFixture fixture({.scheduler = options(4, 100), .blocks = 22});
    const SequenceTask& first = fixture.add(36, first_answer);
    const SequenceTask& second = fixture.add(36, second_answer);
    while (first.preemptions + second.preemptions == 0) fixture.step();
    return first.preemptions > 0;
  };
  EXPECT_TRUE(preempts_first(40, 30));
  EXPECT_FALSE(preempts_first(30, 40));
  EXPECT_FALSE(preempts_first(40, 40));
}

// The first sequence needs 15 of 20 blocks, and one more for its output. 4 blocks are left, however
// many the sequence holds by now.
TEST(Scheduler, AdmissionLeavesWhatIsPromisedAndNothingMore) {
  SchedulerOptions chunked = options(4, 32);
  chunked.long_prefill_tokens = 8;
  SchedulerFixture fixture({.scheduler = chunked, .blocks = 20});
  SequenceTask& promised = fixture.add(60, 4);
  fixture.step();
  SequenceTask& too_large = fixture.add(20, 1);
  fixture.step();
  SequenceTask& fits = fixture.add(16, 1);
  fixture.step();
  EXPECT_EQ(fits.state, TaskState::kRunning);
  EXPECT_EQ(too_large.state, TaskState::kWaiting);
  EXPECT_EQ(too_large.waits_for, WaitReason::kBlocks);
  fixture.steps_until_finished(too_large);
  EXPECT_EQ(promised.preemptions + fits.preemptions + too_large.preemptions, 0u);
}

TEST(Scheduler, BlocksOfAnEndedTaskAreReusableOnlyWhenItsLaunchesAreCollected) {
  SchedulerFixture fixture({.scheduler = options(4, 8), .blocks = 20, .launches_ahead = 1});
  Scheduler& scheduler = fixture.scheduler();
  SequenceTask& task = fixture.add(16, 4);
  ASSERT_NE(scheduler.reserve(scheduler.plan()), nullptr);
  ASSERT_NE(scheduler.reserve(scheduler.plan()), nullptr);
  scheduler.commit(scheduler.begin_collect().chunks.front());
  scheduler.finish(task);
  scheduler.end_collect();
  EXPECT_EQ(fixture.cache().blocks_available(), 16u) << "the second launch writes to them";
  EXPECT_FALSE(scheduler.quiet(task));
  scheduler.commit(scheduler.begin_collect().chunks.front());
  scheduler.end_collect();
  EXPECT_EQ(fixture.cache().blocks_available(), 20u);
  EXPECT_TRUE(scheduler.quiet(task));
}

TEST(Scheduler, PriorityDecidesWhoIsPreempted) {
  SchedulerFixture fixture({.scheduler = options(4, 100), .blocks = 22});
  SequenceTask& low = fixture.add(40, 40, std::nullopt, TenantId(0), 5);
  SequenceTask& high = fixture.add(32, 40, std::nullopt, TenantId(0), 0);
  while (low.preemptions == 0 && high.preemptions == 0) fixture.step();
  EXPECT_EQ(low.preemptions, 1u);
  EXPECT_EQ(high.preemptions, 0u);
}

TEST(Scheduler, LongContextsTakeNoMoreThanTheirShare) {
  SchedulerOptions classes = options(8, 800);
  classes.context_classes = ContextClasses::parse("8:1,max:0.25").value();
  SchedulerFixture fixture({.scheduler = classes});
  for (int i = 0; i < 6; ++i) fixture.add(50, 20);
  fixture.step();
  EXPECT_EQ(fixture.scheduler().running().size(), 2u) << "a quarter of 8 sequences";
  SequenceTask& small = fixture.add(4, 20);
  fixture.step();
  EXPECT_EQ(small.state, TaskState::kRunning);
}

TEST(Scheduler, LongContextsTakeNoMoreThanTheirShareOfTheBlocks) {
  SchedulerOptions classes = options(8, 800);
  classes.context_classes = ContextClasses::parse("8:1,max:0.5").value();
  SchedulerFixture fixture({.scheduler = classes, .blocks = 40});
  std::vector<SequenceTask*> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(&fixture.add(32, 4));  // 8 blocks each
  fixture.step();
  EXPECT_EQ(fixture.scheduler().running().size(), 2u) << "half of 40 blocks";
  for (SequenceTask* const task : tasks) fixture.steps_until_finished(*task);
  EXPECT_EQ(tasks.back()->state, TaskState::kFinished);
}

TEST(Scheduler, ATenantsLimitsHoldItBackAndNobodyElse) {
  SchedulerFixture fixture({.scheduler = options(8, 100)});
  const TenantId narrow = fixture.tenants.add("narrow", {.sequences_running = 1});
  const TenantId small = fixture.tenants.add("small", {.kv_tokens = 30});
  SequenceTask& narrow_first = fixture.add(4, 20, std::nullopt, narrow);
  SequenceTask& narrow_second = fixture.add(4, 20, std::nullopt, narrow);
  SequenceTask& small_first = fixture.add(20, 5, std::nullopt, small);
  SequenceTask& small_second = fixture.add(20, 5, std::nullopt, small);
  SequenceTask& other = fixture.add(4, 20);
  fixture.step();
  EXPECT_EQ(narrow_first.state, TaskState::kRunning);
  EXPECT_EQ(narrow_second.state, TaskState::kWaiting);
  EXPECT_EQ(narrow_second.waits_for, WaitReason::kTenant);
  EXPECT_EQ(small_first.state, TaskState::kRunning);
  EXPECT_EQ(small_second.state, TaskState::kWaiting);
  EXPECT_EQ(other.state, TaskState::kRunning);
  fixture.steps_until_finished(narrow_second);
  fixture.steps_until_finished(small_second);
  EXPECT_EQ(small_second.state, TaskState::kFinished);
}

TEST(Scheduler, MoreThanAStepLooksAtHeldBackByALimitHoldBackNobodyElse) {
  SchedulerOptions classes = options(8, 800);
  classes.candidates_max = 4;
  classes.context_classes = ContextClasses::parse("8:1,max:0.25").value();
  SchedulerFixture fixture({.scheduler = classes});
  const TenantId narrow = fixture.tenants.add("narrow", {.sequences_running = 1});
  for (int i = 0; i < 20; ++i) fixture.add(4, 20, std::nullopt, narrow);
  for (int i = 0; i < 20; ++i) fixture.add(50, 20);
  SequenceTask& other = fixture.add(4, 20);
  fixture.step();
  fixture.step();
  EXPECT_EQ(other.state, TaskState::kRunning);
}

TEST(Scheduler, WhatItsTenantHasNoRoomForIsNotPassedForEver) {
  SchedulerFixture fixture({.scheduler = options(8, 100)});
  const TenantId tenant = fixture.tenants.add("tenant", {.kv_tokens = 40});
  fixture.add(4, 10, std::nullopt, tenant);
  fixture.step();
  SequenceTask& large = fixture.add(38, 2, std::nullopt, tenant);
  for (int i = 0; i < 10; ++i) {
    fixture.add(4, 10, std::nullopt, tenant);
    fixture.step();
  }
  EXPECT_NE(large.state, TaskState::kWaiting);
}

TEST(Scheduler, WhatItsLengthClassHasNoRoomForIsNotPassedForEver) {
  SchedulerOptions classes = options(8, 100);
  classes.context_classes = ContextClasses::parse("8:1,max:0.5").value();
  SchedulerFixture fixture({.scheduler = classes, .blocks = 40});  // 20 blocks for long contexts
  fixture.add(12, 10);
  fixture.step();
  SequenceTask& large = fixture.add(72, 1);
  for (int i = 0; i < 10; ++i) {
    fixture.add(12, 10);
    fixture.step();
  }
  EXPECT_NE(large.state, TaskState::kWaiting);
}

TEST(Scheduler, BusyTenantsShareTokensByWeight) {
  SchedulerFixture fixture({.scheduler = options(4, 16), .blocks = 4000});
  const TenantId light = fixture.tenants.add("light", {.weight = 1});
  const TenantId heavy = fixture.tenants.add("heavy", {.weight = 3});
  for (int i = 0; i < 200; ++i) {
    fixture.add(20, 2, std::nullopt, light);
    fixture.add(20, 2, std::nullopt, heavy);
  }
  for (int i = 0; i < 200; ++i) fixture.step();
  const auto light_tokens = static_cast<double>(fixture.tenants[light].tokens_computed);
  const auto heavy_tokens = static_cast<double>(fixture.tenants[heavy].tokens_computed);
  EXPECT_NEAR(heavy_tokens / light_tokens, 3.0, 0.2);
  // While both tenants wait, their clocks differ by no more than one admission can add.
  EXPECT_LE(std::abs(fixture.tenants[light].clock - fixture.tenants[heavy].clock), 4 * 22.0);
}

TEST(Scheduler, OneStepAdmitsFromTenantsInTurn) {
  SchedulerFixture fixture({.scheduler = options(4, 100)});
  const TenantId late = fixture.tenants.add("late", {});
  for (int i = 0; i < 4; ++i) fixture.add(10, 20);
  for (int i = 0; i < 4; ++i) fixture.add(10, 20, std::nullopt, late);
  fixture.step();
  EXPECT_EQ(fixture.tenants[TenantId(0)].sequences_running, 2u);
  EXPECT_EQ(fixture.tenants[late].sequences_running, 2u);
}

TEST(Scheduler, PrefillsOfBusyTenantsGetTokensInTurn) {
  SchedulerOptions chunked = options(4, 24);
  chunked.long_prefill_tokens = 16;
  SchedulerFixture fixture({.scheduler = chunked});
  const TenantId late = fixture.tenants.add("late", {});
  fixture.add(800, 1);
  fixture.add(800, 1, std::nullopt, late);
  for (int i = 0; i < 20; ++i) fixture.step();
  EXPECT_NEAR(fixture.tenants[TenantId(0)].clock, fixture.tenants[late].clock, 16);
}

// One tenant floods the queue with prompts of 100 steps each; another sends a short prompt now and
// then.
TEST(Scheduler, ANoisyNeighbourDelaysAShortPromptByAStepAndNoMore) {
  SchedulerFixture fixture({.scheduler = options(16, 64), .blocks = 100'000});
  const TenantId noisy = fixture.tenants.add("noisy", {});
  const TenantId quiet = fixture.tenants.add("quiet", {});
  for (int i = 0; i < 50; ++i) fixture.add(6400, 4, std::nullopt, noisy);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 7 * round % 11; ++i) fixture.step();
    SequenceTask& asked = fixture.add(24, 1, std::nullopt, quiet);
    fixture.step();  // the step that runs when the prompt arrives
    EXPECT_LE(fixture.steps_until_finished(asked), 2u) << "round " << round;
  }
  const std::uint64_t before = fixture.tenants[noisy].tokens_computed;
  for (int i = 0; i < 10; ++i) fixture.step();
  EXPECT_GE(fixture.tenants[noisy].tokens_computed - before, 10 * 64u - 8)
      << "alone it has all tokens";
}

TEST(Scheduler, WhatCannotStartHoldsBackNoTokens) {
  SchedulerFixture fixture({.scheduler = options(16, 64), .blocks = 2000});
  const TenantId noisy = fixture.tenants.add("noisy", {});
  const TenantId narrow = fixture.tenants.add("narrow", {.kv_tokens = 20});
  SequenceTask& running = fixture.add(6400, 4, std::nullopt, noisy);
  fixture.step();
  fixture.add(24, 1, std::nullopt, narrow);
  fixture.step();  // the planner examines the waiting sequence
  fixture.step();
  EXPECT_EQ(SchedulerFixture::tokens_of(fixture.step(), running), 64u);
}

TEST(Scheduler, ARequestForTwoSequencesWaitsForTwoSlots) {
  SchedulerFixture fixture({.scheduler = options(2, 100)});
  SequenceTask& single = fixture.add(4, 30);
  fixture.step();
  SequenceTask& pair = fixture.add(4, 30);
  pair.sequence_count = 2;  // set before the planner examines the sequence
  fixture.step();
  EXPECT_EQ(pair.state, TaskState::kWaiting) << "two places are needed, one is left";
  EXPECT_EQ(pair.waits_for, WaitReason::kSequences);
  fixture.scheduler().finish(single);
  fixture.step();
  EXPECT_EQ(pair.state, TaskState::kRunning);
}

TEST(Scheduler, DeadlinesAreFoundInOrderAndOnce) {
  SchedulerFixture fixture({.scheduler = options(1, 100)});
  fixture.add(4, 20);
  SequenceTask& late = fixture.add(4, 20, std::nullopt, TenantId(0), 0, 500);
  SequenceTask& early = fixture.add(4, 20, std::nullopt, TenantId(0), 0, 100);
  fixture.step();
  EXPECT_EQ(fixture.scheduler().expired(99), nullptr);
  EXPECT_EQ(fixture.scheduler().expired(100), &early);
  EXPECT_EQ(fixture.scheduler().expired(1000), &early);
  fixture.scheduler().finish(early);
  EXPECT_EQ(fixture.scheduler().expired(499), nullptr);
  EXPECT_EQ(fixture.scheduler().expired(1000), &late);
  fixture.scheduler().finish(late);
  EXPECT_EQ(fixture.scheduler().expired(1000), nullptr);
}

}  // namespace
}  // namespace pagoda::sched

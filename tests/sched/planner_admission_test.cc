// Which waiting tasks start: a scheduler view in, a plan out. Expected plans follow
// docs/guide/scheduling.md and the contracts of planner.h, by hand.
#include <gtest/gtest.h>

#include "sched/planner_fixture.h"

namespace pagoda::sched {
namespace {

class PlannedAdmissions : public testing::TestWithParam<PlannerCase> {};

TEST_P(PlannedAdmissions, AreThoseOfTheGuide) { EXPECT_EQ(plan_of(GetParam()), GetParam().plan); }

const PlannerCase kTokensAndSlots[] = {
    {.name = "RunningPromptsGetTokensFirst",
     .tasks = {running('a', 4, 24), waiting('b', 30)},
     .plan = "a+20* >b+12"},
    {.name = "WithoutTokensNobodyIsLookedAt",
     .tasks = {running('a', 4, 104), waiting('b', 30)},
     .plan = "a+32"},
    {.name = "PriorityGoesBeforeArrival",
     .tasks = {waiting('a', 20), waiting('b', 20, {.priority = -1}), waiting('c', 20)},
     .plan = ">b+20 >a+12"},
    {.name = "ThePrefillThresholdHoldsForWaitingTasks",
     .tasks = {waiting('a', 20), waiting('b', 20)},
     .plan = ">a+8 >b+8",
     .long_prefill_tokens = 8},
    {.name = "WithoutSlotsNobodyIsAdmitted",
     .tasks = {running('a', 4, 5), running('b', 4, 5), waiting('c', 4)},
     .plan = "a+1* b+1*",
     .sequences_max = 2},
    {.name = "ARequestForTwoSequencesNeedsTwoSlots",
     .tasks = {running('a', 4, 5), waiting('b', 4, {.sequences = 2}), waiting('c', 4)},
     .plan = "a+1* >c+4 b?sequences/1",
     .sequences_max = 2},
    {.name = "ARequestForTwoSequencesTakesTwoSlots",
     .tasks = {waiting('a', 4, {.sequences = 2}), waiting('b', 4), waiting('c', 4)},
     .plan = ">a+4 >b+4",
     .sequences_max = 3},
};
INSTANTIATE_TEST_SUITE_P(OfTokensAndSlots, PlannedAdmissions, testing::ValuesIn(kTokensAndSlots),
                         row_name);

// In a pool of 10 blocks the running task holds 3 and will need a fourth for its next token: 6
// blocks of 4 tokens are left to others. In one of 15 it holds 2 of 11: 4 are left.
const PlannerCase kBlocks[] = {
    {.name = "AllKnownTokensMustFit",
     .tasks = {running('a', 11, 12), waiting('b', 25)},
     .plan = "a+1* b?blocks",
     .blocks = 10},
    {.name = "EveryBlockThatIsLeftMayBeTaken",
     .tasks = {running('a', 11, 12), waiting('b', 24)},
     .plan = "a+1* >b+24",
     .blocks = 10},
    {.name = "WhatAPrefillWillTakeIsPromised",
     .tasks = {running('a', 8, 40), waiting('b', 17), waiting('c', 16)},
     .plan = "a+8 >c+8 b?blocks/1",
     .blocks = 15,
     .long_prefill_tokens = 8},
    {.name = "WhatAnAdmittedTaskWillTakeIsPromised",
     .tasks = {waiting('a', 40), waiting('b', 4)},
     .plan = ">a+8 b?blocks",
     .blocks = 10,
     .long_prefill_tokens = 8},
    {.name = "WaitingTasksNeverPreempt",
     .tasks = {running('a', 11, 12, {.priority = 5}), waiting('b', 25, {.priority = -5})},
     .plan = "a+1* b?blocks",
     .blocks = 10},
    {.name = "ATaskThatWasPassedOftenEnoughIsPassedNoMore",
     .tasks = {running('a', 11, 12), waiting('b', 25, {.times_passed = 2}), waiting('c', 4)},
     .plan = "a+1* b?blocks",
     .blocks = 10,
     .passes_max = 2},
    {.name = "ATaskIsPassedUpToItsLimitWithinAStep",
     .tasks = {running('a', 11, 12), waiting('b', 25, {.times_passed = 1}), waiting('c', 4),
               waiting('d', 4)},
     .plan = "a+1* >c+4 b?blocks/1",
     .blocks = 10,
     .passes_max = 2},
    {.name = "ATaskThatDidNotFitIsNotLookedAtBeforeItsStep",
     .tasks = {waiting('a', 4, {.blocks_wanted = 11, .look_again_step = 101})},
     .plan = "a?blocks",
     .blocks = 10},
    {.name = "ATaskThatDidNotFitIsLookedAtWhenSoMuchIsFree",
     .tasks = {waiting('a', 4, {.blocks_wanted = 10, .look_again_step = 101})},
     .plan = ">a+4",
     .blocks = 10},
    {.name = "ATaskThatDidNotFitIsLookedAtAtItsStep",
     .tasks = {waiting('a', 4, {.blocks_wanted = 11, .look_again_step = 100})},
     .plan = ">a+4",
     .blocks = 10},
    {.name = "AStepLooksAtSoManyTasksAndNoMore",
     .tasks = {waiting('a', 25), waiting('b', 25), waiting('c', 4)},
     .plan = "a?blocks b?blocks",
     .blocks = 6,
     .candidates_max = 2},
};
INSTANTIATE_TEST_SUITE_P(OfBlocks, PlannedAdmissions, testing::ValuesIn(kBlocks), row_name);

// Tasks of text t share their tokens. The running one has computed one block of 40 tokens.
const PlannedTask kComputing = running('a', 4, 40, {.text = 't'});
const PlannerCase kPrefixes[] = {
    {.name = "APrefixInWorkIsWaitedFor",
     .tasks = {kComputing, waiting('b', 30, {.text = 't'})},
     .plan = "a+8 b?prefix",
     .long_prefill_tokens = 8},
    {.name = "OfTwoEqualPromptsOneIsComputed",
     .tasks = {waiting('a', 20, {.text = 't'}), waiting('b', 20, {.text = 't'})},
     .plan = ">a+20 b?prefix"},
    {.name = "ALessUrgentTaskIsNotWaitedFor",
     .tasks = {kComputing, waiting('b', 30, {.priority = -1, .text = 't'})},
     .plan = "a+8 >b+8",
     .long_prefill_tokens = 8},
    {.name = "AnotherSaltIsNotWaitedFor",
     .tasks = {kComputing, waiting('b', 30, {.text = 't', .salt = "other"})},
     .plan = "a+8 >b+8",
     .long_prefill_tokens = 8},
    {.name = "NobodyWaitsForEver",
     .tasks = {kComputing, waiting('b', 30, {.text = 't', .prefix_waits = 3})},
     .plan = "a+8 >b+8",
     .long_prefill_tokens = 8},
    // Of 8 tokens 7 may be shared: 4 are there, and 3 more are no block.
    {.name = "LessThanABlockIsNotWaitedFor",
     .tasks = {kComputing, waiting('b', 8, {.text = 't'})},
     .plan = "a+8 >b+4",
     .long_prefill_tokens = 8},
    {.name = "APromptThatIsComputedWholeWaitsForNobody",
     .tasks = {kComputing, waiting('b', 30, {.text = 't', .compute_whole_prompt = true})},
     .plan = "a+8 >b+8",
     .long_prefill_tokens = 8},
    {.name = "CachedTokensAreNotComputed",
     .tasks = {waiting('a', 30, {.text = 't'})},
     .plan = ">a+10",
     .cached = {running('x', 20, 20, {.text = 't'})}},
    {.name = "TheLastTokenOfACachedPromptIsComputed",
     .tasks = {waiting('a', 20, {.text = 't'})},
     .plan = ">a+1",
     .cached = {running('x', 20, 20, {.text = 't'})}},
    {.name = "APromptThatIsComputedWholeReusesNothing",
     .tasks = {waiting('a', 30, {.text = 't', .compute_whole_prompt = true})},
     .plan = ">a+30",
     .cached = {running('x', 20, 20, {.text = 't'})}},
    {.name = "CachedBlocksAreCountedOnce",
     .tasks = {waiting('a', 24, {.text = 't'})},
     .plan = ">a+4",
     .blocks = 6,
     .cached = {running('x', 20, 20, {.text = 't'})}},
    {.name = "CachedBlocksDoNotMakeThePoolLarger",
     .tasks = {waiting('a', 25, {.text = 't'})},
     .plan = "a?blocks",
     .blocks = 6,
     .cached = {running('x', 20, 20, {.text = 't'})}},
};
INSTANTIATE_TEST_SUITE_P(OfPrefixes, PlannedAdmissions, testing::ValuesIn(kPrefixes), row_name);

const PlannedTask kDecoding = running('z', 4, 5);
const PlannerCase kLoads[] = {
    {.name = "PagesOnTheirWayAreWaitedForAndTheTaskIsPassed",
     .tasks = {waiting('a', 4, {.awaits_load = true}), waiting('b', 4)},
     .plan = ">b+4 a?load/1"},
    // 10 blocks less the 2 of the one that decodes: the load takes 8, nothing is left.
    {.name = "ALoadThatWantsRoomGetsThatOfItsTask",
     .tasks = {kDecoding, waiting('a', 32, {.load_wants_room = true}), waiting('b', 4)},
     .plan = "z+1* a~ a?load b?blocks",
     .blocks = 10},
    {.name = "ALoadGetsItsRoomOnceWhereNothingElseIsPlanned",
     .tasks = {waiting('a', 32, {.load_wants_room = true}), waiting('b', 4)},
     .plan = "a~ a?load b?blocks",
     .blocks = 8},
    {.name = "ALoadThatWantsMoreThanThereIsWaits",
     .tasks = {kDecoding, waiting('a', 33, {.load_wants_room = true}), waiting('b', 4)},
     .plan = "z+1* >b+4 a?blocks/1",
     .blocks = 10},
    {.name = "TiersAreAskedAgainWhereThePoolHasLess",
     .tasks = {kDecoding, waiting('a', 40, {.tokens_seen_in_pool = 36})},
     .plan = "z+1* a~ a?load"},
    {.name = "TiersAreNotAskedAgainWhereThePoolHasAsMuch",
     .tasks = {kDecoding, waiting('a', 40, {.text = 't', .tokens_seen_in_pool = 36})},
     .plan = "z+1* >a+4",
     .cached = {running('x', 36, 36, {.text = 't'})}},
};
INSTANTIATE_TEST_SUITE_P(OfLoads, PlannedAdmissions, testing::ValuesIn(kLoads), row_name);

// Prompts above 8 tokens get a part of 8 sequences and of the blocks.
const PlannerCase kContextClasses[] = {
    {.name = "AClassTakesNoMoreThanItsShareOfTheSequences",
     .tasks = {running('a', 49, 50), running('b', 49, 50), waiting('c', 50), waiting('d', 4)},
     .plan = "a+1* b+1* >d+4 c?context_class/1",
     .context_classes = "8:1,max:0.25"},
    {.name = "AClassBelowItsShareIsAdmitted",
     .tasks = {running('a', 49, 50), waiting('c', 20)},
     .plan = "a+1* >c+20",
     .context_classes = "8:1,max:0.25"},
    {.name = "AClassTakesNoMoreThanItsShareOfTheBlocks",
     .tasks = {running('a', 31, 32), running('b', 31, 32), waiting('c', 20)},
     .plan = "a+1* b+1* c?context_class",
     .blocks = 40,
     .context_classes = "8:1,max:0.5"},
    {.name = "AClassWithNothingRunningAlwaysHasItsTurn",
     .tasks = {waiting('a', 50)},
     .plan = ">a+32",
     .context_classes = "8:1,max:0.01"},
    {.name = "AFullClassHoldsBackAllItsTasks",
     .tasks = {running('a', 49, 50), running('b', 49, 50), waiting('c', 50), waiting('d', 9),
               waiting('e', 8)},
     .plan = "a+1* b+1* >e+8 c?context_class/1",
     .context_classes = "8:1,max:0.25"},
};
INSTANTIATE_TEST_SUITE_P(OfContextClasses, PlannedAdmissions, testing::ValuesIn(kContextClasses),
                         row_name);

}  // namespace
}  // namespace pagoda::sched

// Which tokens a step computes and who is preempted for them: a scheduler view in, a plan out.
// Expected plans follow docs/guide/scheduling.md and the contracts of planner.h, by hand.
#include "sched/planner.h"

#include <gtest/gtest.h>

#include "sched/planner_fixture.h"

namespace pagoda::sched {
namespace {

class PlannedTokens : public testing::TestWithParam<PlannerCase> {};

TEST_P(PlannedTokens, AreThoseOfTheGuide) { EXPECT_EQ(plan_of(GetParam()), GetParam().plan); }

// 32 tokens a step, of which sequences that decode take one each.
const PlannerCase kTokens[] = {
    {.name = "DecodesComeFirstAndAPrefillGetsTheRest",
     .tasks = {running('a', 4, 104), running('b', 10, 11), running('c', 6, 7)},
     .plan = "b+1* c+1* a+30"},
    {.name = "DecodesComeByPriorityThenArrival",
     .tasks = {running('a', 4, 5), running('b', 4, 5, {.priority = -1}), running('c', 4, 5)},
     .plan = "b+1* a+1* c+1*"},
    {.name = "APrefillIsCutAtTheTokenBudget", .tasks = {running('a', 4, 104)}, .plan = "a+32"},
    {.name = "TheChunkThatReachesTheLastTokenSamples",
     .tasks = {running('a', 84, 104)},
     .plan = "a+20*"},
    {.name = "PrefillsShareTheBudgetByArrival",
     .tasks = {running('a', 4, 24), running('b', 4, 104)},
     .plan = "a+20* b+12"},
    {.name = "AnUrgentPrefillGoesBeforeAnEarlierOne",
     .tasks = {running('a', 4, 24), running('b', 4, 104, {.priority = -1})},
     .plan = "b+32"},
    {.name = "ThePrefillThresholdHoldsWhileOthersPrefill",
     .tasks = {running('a', 4, 104), running('b', 4, 104)},
     .plan = "a+8 b+8",
     .long_prefill_tokens = 8},
    {.name = "ThePrefillThresholdHoldsWhileOthersDecode",
     .tasks = {running('a', 4, 104), running('b', 4, 5)},
     .plan = "b+1* a+8",
     .long_prefill_tokens = 8},
    {.name = "ThePrefillThresholdDoesNotHoldAlone",
     .tasks = {running('a', 4, 104)},
     .plan = "a+32",
     .long_prefill_tokens = 8},
    {.name = "ATaskWhoseReaderStopsGetsNoTokens",
     .tasks = {running('a', 4, 5, {.paused = true}), running('b', 4, 5)},
     .plan = "b+1*"},
    {.name = "TheLastTokenOfAFullSequenceIsNotFed",
     .tasks = {running('a', 4, 5, {.tokens_max = 5}), running('b', 4, 5, {.tokens_max = 6})},
     .plan = "b+1*"},
    {.name = "NothingToComputeIsAnEmptyPlan", .tasks = {}, .plan = ""},
};
INSTANTIATE_TEST_SUITE_P(WithBlocks, PlannedTokens, testing::ValuesIn(kTokens), row_name);

// Every task has filled its blocks and the pool is taken: the next token needs a block.
const PlannerCase kPreemptions[] = {
    {.name = "OfEqualsTheLatestIsPreempted",
     .tasks = {running('a', 12, 13), running('b', 12, 13)},
     .plan = "-b a+1*",
     .blocks = 6},
    {.name = "TheLeastUrgentIsPreempted",
     .tasks = {running('a', 12, 13, {.priority = 5}), running('b', 12, 13)},
     .plan = "-a b+1*",
     .blocks = 6},
    {.name = "PriorityGoesBeforeTokensComputed",
     .tasks = {running('a', 16, 17, {.priority = 5}), running('b', 8, 9)},
     .plan = "-a b+1*",
     .blocks = 6},
    // Tenant 1 holds 13 tokens for a weight of 1, tenant 2 holds 26 for a weight of 4.
    {.name = "TheTenantThatHoldsMostForItsWeightLosesFirst",
     .tasks = {running('a', 12, 13, {.tenant = 2}), running('b', 12, 13, {.tenant = 1}),
               running('c', 12, 13, {.tenant = 2})},
     .plan = "-b a+1* c+1*",
     .tenants = {{.limits = {.weight = 1}}, {.limits = {.weight = 4}}},
     .blocks = 9},
    {.name = "ATenantsHoldingGoesBeforeTokensComputed",
     .tasks = {running('a', 8, 9, {.tenant = 1}), running('b', 12, 13, {.tenant = 2})},
     .plan = "-b a+1*",
     .tenants = {{}, {}},
     .blocks = 5},
    {.name = "OfOneTenantTheFewestComputedTokensAreLost",
     .tasks = {running('a', 12, 13), running('b', 8, 9), running('c', 12, 13)},
     .plan = "-b a+1* c+1*",
     .blocks = 8},
    {.name = "OfEqualLossesTheMostWorkLeftIsPreempted",
     .tasks = {running('a', 12, 13, {.tokens_max = 60}), running('b', 12, 13, {.tokens_max = 100}),
               running('c', 12, 13, {.tokens_max = 50})},
     .plan = "-b a+1* c+1*",
     .blocks = 9},
    {.name = "ATaskThatHasItsTokensIsNotPreempted",
     .tasks = {running('a', 9, 10), running('b', 12, 13)},
     .plan = "-b a+1*",
     .blocks = 6},
    {.name = "ATaskThatIsTheCheapestItselfGivesWay",
     .tasks = {running('a', 8, 9), running('b', 12, 13)},
     .plan = "-a b+1*",
     .blocks = 5},
    {.name = "AsManyArePreemptedAsThePrefillNeeds",
     .tasks = {running('a', 16, 32, {.priority = -1}), running('b', 8, 12), running('c', 8, 12)},
     .plan = "-c -b a+16*",
     .blocks = 8},
    {.name = "CachedBlocksOfNobodyAreTakenFirst",
     .tasks = {running('a', 12, 13), running('b', 12, 13)},
     .plan = "a+1* b+1*",
     .blocks = 8,
     .cached = {running('x', 8, 8)}},
    {.name = "WhileBlocksComeBackNobodyIsPreempted",
     .tasks = {running('a', 12, 13), running('b', 12, 13)},
     .plan = "",
     .blocks = 6,
     .blocks_coming = true},
    {.name = "BlocksThatALaunchUsesAreWaitedFor",
     .tasks = {running('a', 12, 13), running('b', 12, 13, {.launched = true})},
     .plan = "-b",
     .blocks = 6},
    {.name = "NobodyIsAdmittedWhileARunningTaskLacksBlocks",
     .tasks = {running('a', 12, 13), running('b', 12, 13), waiting('c', 4)},
     .plan = "-b a+1*",
     .blocks = 6},
};
INSTANTIATE_TEST_SUITE_P(WithoutBlocks, PlannedTokens, testing::ValuesIn(kPreemptions), row_name);

// The reader of a does not keep up.
const PlannerCase kPaused[] = {
    {.name = "ATaskWhoseReaderStopsGivesItsSlotToWhoWaits",
     .tasks = {running('a', 4, 5, {.paused = true}), running('b', 4, 5), waiting('c', 4)},
     .plan = "-a b+1* >c+4",
     .sequences_max = 2},
    {.name = "AllOfThemDo",
     .tasks = {running('a', 4, 5, {.paused = true}), running('b', 4, 5, {.paused = true}),
               waiting('c', 4)},
     .plan = "-a -b >c+4",
     .sequences_max = 2},
    {.name = "ItKeepsItsSlotWhileOthersAreFree",
     .tasks = {running('a', 4, 5, {.paused = true}), running('b', 4, 5), waiting('c', 4)},
     .plan = "b+1* >c+4",
     .sequences_max = 3},
    {.name = "ItKeepsItsSlotUntilItHasGotAToken",
     .tasks = {running('a', 4, 5, {.paused = true, .tokens_at_admission = 5}), running('b', 4, 5),
               waiting('c', 4)},
     .plan = "b+1*",
     .sequences_max = 2},
    {.name = "ItKeepsItsSlotWhileNobodyWaits",
     .tasks = {running('a', 4, 5, {.paused = true}), running('b', 4, 5)},
     .plan = "b+1*",
     .sequences_max = 2},
    {.name = "ItGivesItsBlocksToWhoWaitsForThem",
     .tasks = {running('a', 12, 13, {.paused = true}),
               waiting('c', 8, {.waits_for = WaitReason::kBlocks, .blocks_wanted = 2})},
     .plan = "-a >c+8",
     .blocks = 4},
    {.name = "BlocksThatALaunchUsesComeLater",
     .tasks = {running('a', 12, 13, {.paused = true, .launched = true}),
               waiting('c', 8, {.waits_for = WaitReason::kBlocks, .blocks_wanted = 2})},
     .plan = "-a c?blocks",
     .blocks = 4},
};
INSTANTIATE_TEST_SUITE_P(OfReaders, PlannedTokens, testing::ValuesIn(kPaused), row_name);

}  // namespace
}  // namespace pagoda::sched

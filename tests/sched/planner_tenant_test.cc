// How tenants share a step: a scheduler view in, a plan out. Expected plans follow "Neighbours" and
// "Tenants and length classes" of docs/guide/scheduling.md, by hand.
#include <gtest/gtest.h>

#include "sched/planner_fixture.h"

namespace pagoda::sched {
namespace {

class PlannedTenants : public testing::TestWithParam<PlannerCase> {};

TEST_P(PlannedTenants, AreServedAsTheGuideSays) { EXPECT_EQ(plan_of(GetParam()), GetParam().plan); }

// A step has 32 tokens, and 16 of prompts while several tenants are active: those with requests,
// and for 50 steps those that had some. This is step 100.
const PlannerCase kActiveTenants[] = {
    {.name = "BesideAnActiveTenantAStepHasFewPromptTokens",
     .tasks = {running('a', 4, 104)},
     .plan = "a+16",
     .tenants = {{.asked_step = 51}}},
    {.name = "ATenantThatStayedAwayIsNotActive",
     .tasks = {running('a', 4, 104)},
     .plan = "a+32",
     .tenants = {{.asked_step = 50}}},
    {.name = "ATenantThatNeverAskedIsNotActive",
     .tasks = {running('a', 4, 104)},
     .plan = "a+32",
     .tenants = {{}}},
    {.name = "TokensOfDecodesAreNoPromptTokens",
     .tasks = {running('a', 4, 104), running('b', 4, 5, {.tenant = 1})},
     .plan = "b+1* a+16",
     .tenants = {{}}},
    {.name = "APromptOfOneTokenLeftIsADecode",
     .tasks = {running('a', 103, 104), running('b', 4, 5, {.tenant = 1})},
     .plan = "a+1* b+1*",
     .tenants = {{}},
     .shared_step_tokens = 1},
};
INSTANTIATE_TEST_SUITE_P(OfOneStep, PlannedTenants, testing::ValuesIn(kActiveTenants), row_name);

// Of 16 prompt tokens two tenants of one weight are sure of a quarter of 8 each.
const PlannerCase kShares[] = {
    {.name = "TheRestGoesToWhoHadFewestTokens",
     .tasks = {running('a', 4, 104, {.tenant = 1}), running('b', 4, 104, {.tenant = 2})},
     .plan = "b+14 a+2",
     .tenants = {{.clock = 100}, {.clock = 50}}},
    {.name = "ASureShareGoesByWeight",
     .tasks = {running('a', 4, 104, {.tenant = 1}), running('b', 4, 104, {.tenant = 2})},
     .plan = "b+13 a+3",
     .tenants = {{.clock = 100, .limits = {.weight = 3}}, {.clock = 50}}},
    {.name = "AQuarterOfTheHeaviestIsLittleAndComesFirst",
     .tasks = {running('a', 4, 104, {.tenant = 1}), running('b', 4, 29, {.tenant = 2})},
     .plan = "b+14 a+2",
     .tenants = {{.clock = 0}, {.clock = 500}}},
    {.name = "MoreThanAQuarterIsNotLittle",
     .tasks = {running('a', 4, 104, {.tenant = 1}), running('b', 4, 30, {.tenant = 2})},
     .plan = "a+14 b+2",
     .tenants = {{.clock = 0}, {.clock = 500}}},
    {.name = "WhatATenantDoesNotWantGoesToOthers",
     .tasks = {running('a', 4, 104, {.tenant = 1}), running('b', 4, 9, {.tenant = 2})},
     .plan = "b+5* a+11",
     .tenants = {{.clock = 0}, {.clock = 500}}},
    {.name = "PriorityGoesBeforeEveryShare",
     .tasks = {running('a', 4, 104, {.tenant = 1}),
               running('b', 4, 104, {.tenant = 2, .priority = -1})},
     .plan = "b+16",
     .tenants = {{.clock = 0}, {.clock = 500}}},
    {.name = "AWaitingTenantHasItsSharesSetAside",
     .tasks = {running('a', 4, 104, {.tenant = 1}), waiting('b', 100, {.tenant = 2})},
     .plan = "a+14 >b+2",
     .tenants = {{.clock = 0}, {.clock = 500}}},
    {.name = "AShortQuestionBesideAFloodGetsNearlyAllTokens",
     .tasks = {running('a', 4, 1004, {.tenant = 1}), waiting('f', 1000, {.tenant = 1}),
               waiting('b', 100, {.tenant = 2})},
     .plan = "a+2 >b+14",
     .tenants = {{.clock = 0}, {.clock = 500}}},
    // The urgent one takes all tokens, and does not fit into 10 blocks: the step is not to be
    // empty.
    {.name = "TokensOfATaskThatCannotStartAreNotLost",
     .tasks = {waiting('a', 20, {.tenant = 1}), waiting('b', 44, {.tenant = 2, .priority = -1})},
     .plan = ">a+16 b?blocks/1",
     .tenants = {{}, {}},
     .blocks = 10},
};
INSTANTIATE_TEST_SUITE_P(OfShares, PlannedTenants, testing::ValuesIn(kShares), row_name);

const PlannerCase kOrder[] = {
    {.name = "ATenantThatHadFewerTokensIsAdmittedFirst",
     .tasks = {waiting('a', 10, {.tenant = 1}), waiting('b', 10, {.tenant = 2})},
     .plan = ">b+10 >a+10",
     .tenants = {{.clock = 10}, {.clock = 5}},
     .shared_step_tokens = 32},
    {.name = "ATenantThatWantsLittleIsAdmittedFirst",
     .tasks = {waiting('a', 100, {.tenant = 1}), waiting('b', 5, {.tenant = 2})},
     .plan = ">b+5 >a+11",
     .tenants = {{.clock = 0}, {.clock = 500}}},
    {.name = "PriorityGoesBeforeTenants",
     .tasks = {waiting('a', 10, {.tenant = 1, .priority = -1}), waiting('b', 10, {.tenant = 2})},
     .plan = ">a+10 >b+10",
     .tenants = {{.clock = 10}, {.clock = 5}},
     .shared_step_tokens = 32},
    {.name = "OneStepAdmitsFromTenantsInTurn",
     .tasks = {waiting('a', 4, {.tenant = 1}), waiting('b', 4, {.tenant = 1}),
               waiting('c', 4, {.tenant = 2}), waiting('d', 4, {.tenant = 2})},
     .plan = ">a+4 >c+4 >b+4 >d+4",
     .tenants = {{}, {}},
     .shared_step_tokens = 32},
    // An admitted token moves the clock of weight 2 by a half.
    {.name = "OneStepAdmitsByWeight",
     .tasks = {waiting('a', 4, {.tenant = 1}), waiting('b', 4, {.tenant = 1}),
               waiting('c', 4, {.tenant = 1}), waiting('d', 4, {.tenant = 2}),
               waiting('e', 4, {.tenant = 2})},
     .plan = ">a+4 >d+4 >b+4 >c+4 >e+4",
     .tenants = {{.limits = {.weight = 2}}, {.clock = 1}},
     .shared_step_tokens = 32},
};
INSTANTIATE_TEST_SUITE_P(OfOrder, PlannedTenants, testing::ValuesIn(kOrder), row_name);

// Tenant 1 runs; tenant 2 asked lately and has nothing running.
const PlannerCase kRoomForOthers[] = {
    {.name = "ASlotIsLeftToAnActiveTenant",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               running('c', 4, 5, {.tenant = 1}), waiting('d', 4, {.tenant = 1})},
     .plan = "a+1* b+1* c+1* d?tenant",
     .tenants = {{}, {.asked_step = 90}},
     .sequences_max = 4},
    {.name = "TheTenantItIsLeftToTakesTheSlot",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               running('c', 4, 5, {.tenant = 1}), waiting('d', 4, {.tenant = 1}),
               waiting('e', 4, {.tenant = 2})},
     .plan = "a+1* b+1* c+1* >e+4 d?tenant/1",
     .tenants = {{}, {}},
     .sequences_max = 4},
    {.name = "NoSlotIsLeftToATenantThatStayedAway",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               running('c', 4, 5, {.tenant = 1}), waiting('d', 4, {.tenant = 1})},
     .plan = "a+1* b+1* c+1* >d+4",
     .tenants = {{}, {.asked_step = 10}},
     .sequences_max = 4},
    {.name = "NoMoreThanAQuarterOfTheSlotsIsLeft",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               waiting('c', 4, {.tenant = 1})},
     .plan = "a+1* b+1* >c+4",
     .tenants = {{}, {.asked_step = 90}, {.asked_step = 90}, {.asked_step = 90}},
     .sequences_max = 4},
    // Of 64 blocks the running task takes 4 and 8 are left to others: 52 blocks are 208 tokens.
    {.name = "AnEighthOfTheCacheIsLeftToActiveTenants",
     .tasks = {running('a', 12, 13, {.tenant = 1}), waiting('b', 209, {.tenant = 1})},
     .plan = "a+1* b?tenant",
     .tenants = {{}, {.asked_step = 90}},
     .blocks = 64},
    {.name = "AllButAnEighthOfTheCacheMayBeTaken",
     .tasks = {running('a', 12, 13, {.tenant = 1}), waiting('b', 208, {.tenant = 1})},
     .plan = "a+1* >b+16",
     .tenants = {{}, {.asked_step = 90}},
     .blocks = 64},
};
INSTANTIATE_TEST_SUITE_P(OfRoom, PlannedTenants, testing::ValuesIn(kRoomForOthers), row_name);

const PlannerCase kLimits[] = {
    {.name = "ALimitOfSequencesHoldsBackItsTenantAlone",
     .tasks = {running('a', 4, 5, {.tenant = 1}), waiting('b', 4, {.tenant = 1}), waiting('c', 4)},
     .plan = "a+1* >c+4 b?tenant/1",
     .tenants = {{.limits = {.sequences_running = 1}}}},
    {.name = "ALimitHoldsBackAllTasksOfItsTenant",
     .tasks = {running('a', 20, 21, {.tenant = 1}), waiting('b', 10, {.tenant = 1}),
               waiting('c', 4, {.tenant = 1})},
     .plan = "a+1* b?tenant",
     .tenants = {{.limits = {.kv_tokens = 30}}}},
    {.name = "UpToALimitTokensAreHeld",
     .tasks = {running('a', 20, 21, {.tenant = 1}), waiting('b', 9, {.tenant = 1})},
     .plan = "a+1* >b+9",
     .tenants = {{.limits = {.kv_tokens = 30}}}},
    {.name = "WhatOneStepAdmitsCountsAgainstALimit",
     .tasks = {waiting('a', 4, {.tenant = 1}), waiting('b', 4, {.tenant = 1})},
     .plan = ">a+4 b?tenant",
     .tenants = {{.limits = {.sequences_running = 1}}}},
    {.name = "ATenantWithNothingRunningAlwaysHasItsTurn",
     .tasks = {waiting('a', 20, {.tenant = 1})},
     .plan = ">a+20",
     .tenants = {{.limits = {.kv_tokens = 5}}}},
};
INSTANTIATE_TEST_SUITE_P(OfLimits, PlannedTenants, testing::ValuesIn(kLimits), row_name);

// Four tasks fill the slots, or the blocks; another tenant, of which nothing runs, waits.
const PlannerCase kPreemptedForOthers[] = {
    {.name = "ATenantOfWhichNothingRunsGetsASlot",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               running('c', 4, 5, {.tenant = 1}), running('d', 4, 5, {.tenant = 1}),
               waiting('e', 4, {.tenant = 2})},
     .plan = "-d a+1* b+1* c+1* >e+4",
     .tenants = {{}, {}},
     .sequences_max = 4},
    {.name = "NobodyElseTakesThatSlot",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               running('c', 4, 5, {.tenant = 1}), running('d', 4, 5, {.tenant = 1}),
               waiting('f', 4, {.tenant = 1}), waiting('e', 4, {.tenant = 2})},
     .plan = "-d a+1* b+1* c+1* >e+4 f?tenant/1",
     .tenants = {{.clock = 5}, {.clock = 50}},
     .sequences_max = 4},
    {.name = "ATenantThatHasASlotGetsNoOther",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               running('c', 4, 5, {.tenant = 2}), waiting('d', 4, {.tenant = 2})},
     .plan = "a+1* b+1* c+1*",
     .tenants = {{}, {}},
     .sequences_max = 3},
    {.name = "TheTenantWithMostSlotsForItsWeightGivesOne",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               running('c', 4, 5, {.tenant = 2}), running('d', 4, 5, {.tenant = 2}),
               waiting('e', 4, {.tenant = 3})},
     .plan = "-b a+1* c+1* d+1* >e+4",
     .tenants = {{}, {.limits = {.weight = 4}}, {}},
     .sequences_max = 4},
    {.name = "ATenantsOnlySlotIsNotTaken",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 2}),
               waiting('c', 4, {.tenant = 3})},
     .plan = "a+1* b+1*",
     .tenants = {{}, {}, {}},
     .sequences_max = 2},
    {.name = "ARequestForSeveralGetsUpToItsFairShare",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               running('c', 4, 5, {.tenant = 1}), running('d', 4, 5, {.tenant = 1}),
               waiting('e', 4, {.tenant = 2, .sequences = 2})},
     .plan = "-d -c a+1* b+1* >e+4",
     .tenants = {{}, {}},
     .sequences_max = 4},
    {.name = "ARequestForMoreThanItsFairShareWaits",
     .tasks = {running('a', 4, 5, {.tenant = 1}), running('b', 4, 5, {.tenant = 1}),
               running('c', 4, 5, {.tenant = 1}), running('d', 4, 5, {.tenant = 1}),
               waiting('e', 4, {.tenant = 2, .sequences = 3})},
     .plan = "a+1* b+1* c+1* d+1*",
     .tenants = {{}, {}},
     .sequences_max = 4},
    // Each of the running tasks holds 4 of the 16 blocks. Of those of d three are promised to the
    // others' next tokens, and one is left.
    {.name = "ATenantOfWhichNothingRunsGetsBlocks",
     .tasks = {running('a', 15, 16, {.tenant = 1}), running('b', 15, 16, {.tenant = 1}),
               running('c', 15, 16, {.tenant = 1}), running('d', 15, 16, {.tenant = 1}),
               waiting('e', 4,
                       {.tenant = 2, .waits_for = WaitReason::kBlocks, .blocks_wanted = 1})},
     .plan = "-d a+1* b+1* c+1* >e+4",
     .tenants = {{}, {}},
     .blocks = 16},
};
INSTANTIATE_TEST_SUITE_P(OfPreemptions, PlannedTenants, testing::ValuesIn(kPreemptedForOthers),
                         row_name);

}  // namespace
}  // namespace pagoda::sched

// What an ITL target leaves of a step to prompts: a scheduler view with predicted costs in, a plan
// out. Steps take 2 ms and 1 ms a token unless a row says otherwise, so that expected chunks are
// sums by hand.
#include <gtest/gtest.h>

#include "sched/planner_fixture.h"

namespace pagoda::sched {
namespace {

ItlLimit target(double milliseconds, StepCosts more = {}) {
  StepCosts costs = more;
  if (costs.step_s == 0) costs.step_s = 0.002;
  costs.token_s = 0.001;
  costs.spread = more.spread == StepCosts{}.spread ? 0 : more.spread;
  if (costs.prompt_tokens_trusted == StepCosts::kTrustedAtFirst) costs.prompt_tokens_trusted = 1000;
  return {.target_s = milliseconds * 1e-3, .costs = costs};
}

class PlannedInTime : public testing::TestWithParam<PlannerCase> {};

TEST_P(PlannedInTime, AreThoseOfTheGuide) { EXPECT_EQ(plan_of(GetParam()), GetParam().plan); }

const PlannerCase kTimed[] = {
    // 25 ms are 2 for the step, 1 for b and 22 for a.
    {.name = "APrefillHasTheTimeThatDecodesLeave",
     .tasks = {running('a', 4, 104), running('b', 10, 11)},
     .plan = "b+1* a+22",
     .itl = target(25.5)},
    {.name = "WithoutATargetItHasTheTokens",
     .tasks = {running('a', 4, 104), running('b', 10, 11)},
     .plan = "b+1* a+31",
     .itl = target(0)},
    {.name = "WhereNobodyDecodesItHasTheTokens",
     .tasks = {running('a', 4, 104), running('c', 4, 104)},
     .plan = "a+32",
     .itl = target(20)},
    {.name = "MoreDecodesLeaveLess",
     .tasks = {running('a', 4, 104), running('b', 10, 11), running('c', 10, 11),
               running('d', 10, 11)},
     .plan = "b+1* c+1* d+1* a+20",
     .itl = target(25.5)},
    // A reader that stops waits for nothing.
    {.name = "WhoIsPausedDoesNotDecode",
     .tasks = {running('a', 4, 104), running('b', 4, 5, {.paused = true})},
     .plan = "a+32",
     .itl = target(25.5)},
    // l has sampled its first token and waits for its forks; nobody else decodes.
    {.name = "WhoseTokenIsBeingSampledDecodes",
     .tasks = {running('a', 4, 104), running('l', 8, 8, {.sequences = 2, .samples = 1})},
     .plan = "a+23",
     .itl = target(25.5)},
    {.name = "WhoEndsWithThatTokenDoesNot",
     .tasks = {running('a', 4, 104), running('l', 8, 8, {.tokens_max = 9, .samples = 1})},
     .plan = "a+32",
     .itl = target(25.5)},
    // n tokens behind 4 see 4 n + n (n + 1) / 2 keys: 19 take 19 + 2.66 ms, 20 take 20 + 2.9.
    {.name = "KeysTakeTime",
     .tasks = {running('a', 4, 104), running('b', 10, 11)},
     .plan = "b+1* a+19",
     .itl = target(25.5, {.prompt_key_s = 1e-5})},
    // Behind 400 tokens 18 take 18 + 7.2 + 0.17 ms of 25.5, and 19 take 26.8.
    {.name = "LongerContextsGetFewerTokens",
     .tasks = {running('a', 400, 504), running('b', 10, 11)},
     .plan = "b+1* a+18",
     .itl = target(28.5, {.prompt_key_s = 1e-6})},
    // 11 keys of b are 11 ms.
    {.name = "KeysOfDecodesTakeTime",
     .tasks = {running('a', 4, 104), running('b', 10, 11)},
     .plan = "b+1* a+17",
     .itl = target(31.5, {.decode_key_s = 1e-3})},
    {.name = "SixteenTokensAreSure",
     .tasks = {running('a', 4, 104), running('b', 10, 11)},
     .plan = "b+1* a+16",
     .itl = target(1)},
    {.name = "SoIsAnEighthOfTheTarget",
     .tasks = {running('a', 4, 104), running('b', 10, 11)},
     .plan = "b+1* a+25",
     .itl = target(201, {.step_s = 10})},
    // 25.5 / 1.2 is 21.25.
    {.name = "TwiceThePredictionsErrorIsKeptFree",
     .tasks = {running('a', 4, 104), running('b', 10, 11)},
     .plan = "b+1* a+18",
     .itl = target(25.5, {.spread = 0.1 - 1e-9})},
    {.name = "StepsFarBeyondMeasuredOnesAreNotPlanned",
     .tasks = {running('a', 4, 104), running('b', 10, 11)},
     .plan = "b+1* a+20",
     .itl = target(25.5, {.prompt_tokens_trusted = 20})},
    {.name = "PrefillsShareTheTime",
     .tasks = {running('a', 4, 14), running('b', 10, 11), running('c', 4, 104)},
     .plan = "b+1* a+10* c+12",
     .itl = target(25.5)},
    {.name = "AdmissionsGetWhatIsLeftOfIt",
     .tasks = {running('a', 4, 14), running('b', 10, 11), waiting('c', 100), waiting('d', 100)},
     .plan = "b+1* a+10* >c+12",
     .itl = target(25.5)},
    // The keys of c's 40 cached tokens take 4.55 of 22.5 ms, its tokens 10: 7 of d take 7.28.
    {.name = "AdmissionsBehindLongPrefixesLeaveLess",
     .tasks = {running('b', 10, 11), waiting('c', 50, {.text = 't'}), waiting('d', 100)},
     .plan = "b+1* >c+10 >d+7",
     .cached = {running('x', 40, 40, {.text = 't'})},
     .itl = target(25.5, {.prompt_key_s = 1e-5})},
    {.name = "ThePrefillThresholdHoldsBesideIt",
     .tasks = {running('a', 4, 104), running('b', 10, 11), running('c', 4, 104)},
     .plan = "b+1* a+8 c+8",
     .long_prefill_tokens = 8,
     .itl = target(25.5)},
    {.name = "SoDoTheTokensThatTenantsShare",
     .tasks = {running('a', 4, 104, {.tenant = 1}), running('b', 10, 11, {.tenant = 2}),
               waiting('c', 8, {.tenant = 2})},
     .plan = "b+1* a+10 >c+8",
     .tenants = {{}, {}},
     .shared_step_tokens = 18,
     .itl = target(25.5)},
    // c wants little and goes first; a has what is left of 22 ms.
    {.name = "TenantsShareTheTimeAsTheyShareTokens",
     .tasks = {running('a', 4, 104, {.tenant = 1}), running('b', 10, 11, {.tenant = 2}),
               running('c', 4, 12, {.tenant = 2})},
     .plan = "b+1* c+8* a+14",
     .tenants = {{}, {}},
     .shared_step_tokens = 64,
     .itl = target(25.5)},
    // A chunk ends where pages are dropped: once there are 17 tokens for a budget of 16.
    {.name = "AKvPolicyCutsChunksAsBefore",
     .tasks = {running('a', 4, 104, {.drops = "h2o:16+8", .prompt_of_drops = 4}),
               running('b', 10, 11)},
     .plan = "b+1* a+13",
     .itl = target(25.5)},
};
INSTANTIATE_TEST_SUITE_P(OfPrompts, PlannedInTime, testing::ValuesIn(kTimed), row_name);

// Draft tokens pay by themselves: the target bounds them beside prompts alone.
TEST(PlannedInTime, DraftsAloneAreNotBounded) {
  const PlannerCase alone = {.name = "alone", .tasks = {running('b', 10, 11)}, .itl = target(5)};
  EXPECT_EQ(tokens_left_of(alone), 31u);
  PlannerCase beside = alone;
  beside.itl = target(25.5);
  beside.tasks.push_back(running('a', 4, 14));
  EXPECT_EQ(tokens_left_of(beside), 12u);
}

}  // namespace
}  // namespace pagoda::sched

// How many draft tokens pay: measured costs of rows, and the request's own acceptance.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>
#include <vector>

#include "speculate/acceptance.h"
#include "speculate/row_costs.h"
#include "speculate/speculator.h"
#include "speculate/step_drafts.h"

namespace pagoda::speculate {
namespace {

// Steps of one row take 10 ms, and each further row `slope` of that.
RowCosts measured(double slope, std::uint32_t rows_max = 64) {
  RowCosts costs;
  for (int i = 0; i < 30; ++i) {
    for (std::uint32_t rows = 1; rows <= rows_max; ++rows) {
      costs.note(rows, 0.010 * (1 + slope * (rows - 1)));
    }
  }
  return costs;
}

TEST(RowCosts, ChoosesTheLengthWithMostTokensASecond) {
  for (const double slope : {0.02, 0.1, 0.3, 0.9}) {
    const RowCosts costs = measured(slope);
    for (const double probability : {0.2, 0.5, 0.8, 0.95, 1.0}) {
      double best_rate = 1.02;  // tokens per 10 ms: a gain below 2 % may be noise
      std::uint32_t best = 0;
      double reached = 1;
      double expected = 1;
      for (std::uint32_t drafts = 1; drafts <= 24; ++drafts) {
        expected += reached *= probability;
        const double rate = expected / (1 + slope * drafts);
        if (rate > best_rate * 1.000001) {
          best_rate = rate;
          best = drafts;
        }
      }
      const RowCosts::Choice choice = costs.choose(1, {probability, 24});
      EXPECT_NEAR(choice.drafts, best, 1) << slope << ", " << probability;
      EXPECT_EQ(choice.drafts == 0, best == 0) << slope << ", " << probability;
    }
  }
}

TEST(RowCosts, NothingPaysWhereARowCostsAsMuchAsAStep) {
  const RowCosts costs = measured(1.0);
  EXPECT_EQ(costs.choose(1, {0.95, 24}).drafts, 0u);
  EXPECT_EQ(costs.choose(16, {1.0, 24}).drafts, 0u) << "a batch that is bound by computing";
}

TEST(RowCosts, ABatchIsWorthLessDraftTokensThanOneSequence) {
  RowCosts costs;  // flat up to 8 rows, steep behind
  for (std::uint32_t rows = 1; rows <= 64; ++rows) {
    costs.note(rows, rows <= 8 ? 0.010 : 0.010 * rows / 8.0);
  }
  EXPECT_EQ(costs.choose(1, {0.9, 24}).drafts, 7u);
  EXPECT_EQ(costs.choose(6, {0.9, 24}).drafts, 2u);
  EXPECT_EQ(costs.choose(8, {0.9, 24}).drafts, 0u);
}

TEST(RowCosts, ADisturbedStepIsNoMeasurementForLong) {
  RowCosts costs = measured(0.1, 8);
  costs.note(4, 10.0);
  EXPECT_LT(costs.seconds(4), 0.016);
  for (int i = 0; i < 5000; ++i) costs.note(1, 0.010);
  EXPECT_NEAR(costs.seconds(8) / costs.seconds(1), 1.7, 0.01) << "old times are forgotten";
}

TEST(Acceptance, FollowsTheRequestsOwnDrafts) {
  Acceptance acceptance;
  const double usual = acceptance.probability(DraftMethod::kSuffix, 5);
  for (int i = 0; i < 20; ++i) acceptance.note(DraftMethod::kSuffix, 5, 4, 0);
  EXPECT_LT(acceptance.probability(DraftMethod::kSuffix, 5), 0.05);
  EXPECT_EQ(acceptance.probability(DraftMethod::kTree, 5),
            Acceptance().probability(DraftMethod::kTree, 5))
      << "of other methods nothing was learnt";
  for (int i = 0; i < 400; ++i) acceptance.note_unused(DraftMethod::kSuffix, 5);
  EXPECT_NEAR(acceptance.probability(DraftMethod::kSuffix, 5), usual, 0.02);
  for (int i = 0; i < 20; ++i) acceptance.note(DraftMethod::kSuffix, 5, 4, 4);
  EXPECT_GT(acceptance.probability(DraftMethod::kSuffix, 5), 0.95);
}

TEST(RowCosts, OneOfManySequencesMayGainLittleOfTheWholeStep) {
  RowCosts costs;
  for (std::uint32_t rows = 1; rows <= 256; ++rows) costs.note(rows, 0.010 + 0.00004 * rows);
  EXPECT_GT(costs.choose(64, {0.8, 8}).drafts, 1u) << "a gain of some hundredths";
}

// What each of some offers gives, tried out: every way of sharing rows that takes a prefix of each.
struct BestShare {
  double rate = 0;
  std::vector<std::uint32_t> taken;
};
void try_shares(const RowCosts& costs, std::uint32_t rows,
                const std::vector<StepDrafts::Offer>& offers, std::uint32_t tokens_max,
                std::vector<std::uint32_t>& taken, BestShare& best) {
  if (taken.size() < offers.size()) {
    for (std::uint32_t tokens = 0; tokens <= offers[taken.size()].tokens; ++tokens) {
      taken.push_back(tokens);
      try_shares(costs, rows, offers, tokens_max, taken, best);
      taken.pop_back();
    }
    return;
  }
  double tokens = rows;
  std::uint32_t drafts = 0;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    double reached = 1;
    for (std::uint32_t place = 0; place < taken[i]; ++place) {
      tokens += reached *= offers[i].probability;
    }
    drafts += taken[i];
  }
  if (drafts > tokens_max) return;
  const double rate =
      drafts == 0 ? costs.rate_to_beat(rows) : tokens / costs.seconds(rows + drafts);
  if (rate > best.rate) best = {rate, taken};
}

TEST(StepDrafts, TakesTheShareThatGivesMostTokensASecond) {
  const auto stairs = [](std::uint32_t rows) { return 0.004 + 0.003 * ((rows + 3) / 4); };
  const auto line = [](std::uint32_t rows) { return 0.008 + 0.001 * rows; };
  const auto knee = [](std::uint32_t rows) { return rows < 10 ? 0.010 : 0.001 * rows; };
  for (const auto& seconds :
       std::vector<std::function<double(std::uint32_t)>>{stairs, line, knee}) {
    RowCosts costs;
    for (std::uint32_t rows = 1; rows <= 64; ++rows) costs.note(rows, seconds(rows));
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
      const auto rows = static_cast<std::uint32_t>(4 + random() % 8);
      const auto tokens_max = static_cast<std::uint32_t>(random() % 14);
      std::vector<StepDrafts::Offer> offers;
      StepDrafts step;
      step.begin(rows);
      for (int i = 0; i < 4; ++i) {
        offers.push_back({.tokens = static_cast<std::uint32_t>(random() % 5),
                          .probability = static_cast<double>(random() % 1000) / 1000});
        step.add(offers.back());
      }
      BestShare best;
      std::vector<std::uint32_t> taken;
      try_shares(costs, rows, offers, tokens_max, taken, best);
      std::uint32_t drafts = 0;
      for (const std::uint32_t tokens : best.taken) drafts += tokens;
      ASSERT_EQ(step.choose({.costs = &costs, .tokens_max = tokens_max}), drafts) << round;
      ASSERT_EQ(step.rows(), rows + drafts);
      for (std::size_t i = 0; i < offers.size(); ++i) ASSERT_EQ(step.taken(i), best.taken[i]);
    }
  }
}

TEST(StepDrafts, ManyPayWhereOneAloneDoesNot) {
  RowCosts costs;  // by tiles of 64 rows
  for (std::uint32_t rows = 1; rows <= 256; ++rows) {
    costs.note(rows, 0.004 + 0.002 * ((rows + 63) / 64));
  }
  StepDrafts step;
  step.begin(64);
  step.add({.tokens = 8, .probability = 0.9});
  EXPECT_EQ(step.choose({.costs = &costs, .tokens_max = 256}), 0u)
      << "one more tile for one sequence";
  step.begin(64);
  for (int i = 0; i < 64; ++i) step.add({.tokens = 8, .probability = 0.9});
  EXPECT_EQ(step.choose({.costs = &costs, .tokens_max = 256}), 192u)
      << "three tokens for each fill the tiles";
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(step.taken(i), 3u);
}

TEST(StepDrafts, WithoutCostsTakesAllOfThemEvenly) {
  StepDrafts step;
  step.begin(3);
  for (const std::uint32_t tokens : {1u, 5u, 5u}) step.add({.tokens = tokens, .probability = 1});
  EXPECT_EQ(step.choose({.tokens_max = 7}), 7u);
  EXPECT_EQ(step.taken(0), 1u);
  EXPECT_EQ(step.taken(1), 3u);
  EXPECT_EQ(step.taken(2), 3u);
}

// The draft model finds a token of each sequence in a launch: the launch is what costs.
TEST(StepDrafts, LaunchesOfTheDraftModelArePaidForOnce) {
  RowCosts costs;
  RowCosts model;
  for (std::uint32_t rows = 1; rows <= 512; ++rows) {
    costs.note(rows, 0.010);
    model.note(rows, 0.002);
  }
  const auto taken = [&](int sequences, double delay = 0) {
    StepDrafts step;
    step.begin(64);
    for (int i = 0; i < sequences; ++i)
      step.add({.tokens = 4, .probability = 0.9, .by_model = true});
    return step.choose({.costs = &costs, .model_costs = &model, .tokens_max = 256, .delay = delay});
  };
  EXPECT_EQ(taken(1), 0u) << "a launch for one of 64 sequences";
  EXPECT_EQ(taken(64), 256u) << "four launches for all";
  EXPECT_EQ(taken(64, 0.1), 0u) << "and a long wait";
}

TEST(StepDrafts, DraftsThatCostNothingDoNotWaitForTheModels) {
  RowCosts costs;
  RowCosts model;
  for (std::uint32_t rows = 1; rows <= 64; ++rows) {
    costs.note(rows, 0.010);
    model.note(rows, 0.009);
  }
  StepDrafts step;
  step.begin(2);
  step.add({.tokens = 4, .probability = 0.7, .by_model = true});
  step.add({.tokens = 4, .probability = 0.65});
  EXPECT_EQ(step.choose({.costs = &costs, .model_costs = &model, .tokens_max = 64}), 4u);
  EXPECT_EQ(step.taken(0), 0u);
  EXPECT_EQ(step.taken(1), 4u);
}

TEST(RowCosts, AnyNumberOfDraftsMayBeAskedAbout) {
  RowCosts costs;
  costs.note(1, 0.001);
  costs.note(2, 0.100);
  EXPECT_FALSE(costs.may_pay(1, UINT32_MAX));
}

// A launch waits for the tokens that drafts follow where all of them together gain more than the
// wait costs.
TEST(Speculator, DraftsOfFewSequencesAreNotWaitedFor) {
  SpeculationOptions options;
  options.methods = MethodSet(DraftMethod::kSuffix);
  Speculator speculator(options);
  for (std::uint32_t rows = 1; rows <= 256; ++rows) speculator.note_step(rows, 0.010);
  const auto drafting = speculator.open({.tokens_expected = 100});
  drafting->method = DraftMethod::kSuffix;
  for (int i = 0; i < 50; ++i) speculator.note_verified(*drafting, 4, 4);
  const auto pay = [&](int sequences, double delay) {
    speculator.begin_step({.rows = 64, .sequences = 64, .drafts_max = 256});
    for (int i = 0; i < sequences; ++i) speculator.offer(*drafting, 4);
    return speculator.choose(delay) > 0;
  };
  EXPECT_FALSE(pay(0, 0)) << "there are none";
  EXPECT_TRUE(pay(1, 0));
  EXPECT_TRUE(pay(1, 0.0005)) << "four tokens are six hundredths of the step's";
  EXPECT_FALSE(pay(1, 0.001));
  EXPECT_TRUE(pay(16, 0.005));
}

// Drafts by a script, for the choice between methods.
TEST(Speculator, DraftsNothingWhereItDoesNotPay) {
  SpeculationOptions options;
  options.methods = MethodSet(DraftMethod::kSuffix);
  Speculator speculator(options);
  for (int i = 0; i < 20; ++i) {
    for (std::uint32_t rows = 1; rows <= 32; ++rows) speculator.note_step(rows, 0.01 * rows);
  }
  std::vector<TokenId> text;
  for (std::uint32_t i = 0; i < 60; ++i) text.emplace_back(i % 10);
  const auto drafting = speculator.open({.tokens_expected = 100});
  std::vector<TokenId> draft;
  speculator.begin_step({.rows = 1, .drafts_max = 24});
  EXPECT_FALSE(speculator.propose({.tokens = text}, *drafting, 24, draft));
  for (int i = 0; i < 60; ++i) {  // now further rows are free
    for (std::uint32_t rows = 1; rows <= 32; ++rows) speculator.note_step(rows, 0.01);
  }
  speculator.begin_step({.rows = 1, .drafts_max = 24});
  ASSERT_TRUE(speculator.propose({.tokens = text}, *drafting, 24, draft));
  for (std::size_t i = 0; i < draft.size(); ++i) EXPECT_EQ(draft[i].value(), i % 10);
  EXPECT_FALSE(speculator.propose({.tokens = text}, *drafting, 0, draft));
}

}  // namespace
}  // namespace pagoda::speculate

// How many draft tokens pay: measured costs of rows, and the request's own acceptance.
#include <gtest/gtest.h>

#include <array>

#include "speculate/acceptance.h"
#include "speculate/row_costs.h"
#include "speculate/speculator.h"

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
      const RowCosts::Choice choice = costs.choose({1, 1}, probability, 24);
      EXPECT_NEAR(choice.drafts, best, 1) << slope << ", " << probability;
      EXPECT_EQ(choice.drafts == 0, best == 0) << slope << ", " << probability;
    }
  }
}

TEST(RowCosts, NothingPaysWhereARowCostsAsMuchAsAStep) {
  const RowCosts costs = measured(1.0);
  EXPECT_EQ(costs.choose({1, 1}, 0.95, 24).drafts, 0u);
  EXPECT_EQ(costs.choose({16, 16}, 1.0, 24).drafts, 0u) << "a batch that is bound by computing";
}

TEST(RowCosts, ABatchIsWorthLessDraftTokensThanOneSequence) {
  RowCosts costs;  // flat up to 8 rows, steep behind
  for (std::uint32_t rows = 1; rows <= 64; ++rows) {
    costs.note(rows, rows <= 8 ? 0.010 : 0.010 * rows / 8.0);
  }
  EXPECT_EQ(costs.choose({1, 1}, 0.9, 24).drafts, 7u);
  EXPECT_EQ(costs.choose({6, 6}, 0.9, 24).drafts, 2u);
  EXPECT_EQ(costs.choose({8, 8}, 0.9, 24).drafts, 0u);
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
  EXPECT_GT(costs.choose({64, 64}, 0.8, 8).drafts, 1u) << "a gain of some hundredths";
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
  speculator.begin_step(64);
  EXPECT_FALSE(speculator.drafts_pay(0)) << "there are none";
  speculator.note_drafted(*drafting, 4);
  EXPECT_TRUE(speculator.drafts_pay(0));
  EXPECT_TRUE(speculator.drafts_pay(0.0005)) << "four tokens are six hundredths of the step's";
  EXPECT_FALSE(speculator.drafts_pay(0.001));
  for (int i = 0; i < 15; ++i) speculator.note_drafted(*drafting, 4);
  EXPECT_TRUE(speculator.drafts_pay(0.005));
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
  speculator.begin_step(1);
  EXPECT_FALSE(speculator.propose({.tokens = text}, *drafting, 24, draft));
  for (int i = 0; i < 60; ++i) {  // now further rows are free
    for (std::uint32_t rows = 1; rows <= 32; ++rows) speculator.note_step(rows, 0.01);
  }
  speculator.begin_step(1);
  ASSERT_TRUE(speculator.propose({.tokens = text}, *drafting, 24, draft));
  for (std::size_t i = 0; i < draft.size(); ++i) EXPECT_EQ(draft[i].value(), i % 10);
  EXPECT_FALSE(speculator.propose({.tokens = text}, *drafting, 0, draft));
}

}  // namespace
}  // namespace pagoda::speculate

// Divergences against formulas written out by hand.
#include "eval/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pagoda::eval {
namespace {

const float kLogTwo = std::log(2.0f);

TEST(Divergence, IsTheFormulaOfTwoDistributions) {
  // p = (1/3, 2/3), q = (1/2, 1/2); then the other way round.
  const std::vector<float> p = {0.0f, kLogTwo};
  const std::vector<float> q = {0.0f, 0.0f};
  EXPECT_NEAR(compare_rows(p, q).kl, std::log(2.0 / 3) / 3 + 2 * std::log(4.0 / 3) / 3, 1e-7);
  EXPECT_NEAR(compare_rows(q, p).kl, std::log(3.0 / 2) / 2 + std::log(3.0 / 4) / 2, 1e-7);
}

TEST(Divergence, OfEqualDistributionsIsNothingWhateverIsAddedToTheirLogits) {
  const std::vector<float> row = {1.5f, -2.25f, 0.75f, 3.0f};
  std::vector<float> shifted = row;
  for (float& logit : shifted) logit += 64.0f;
  EXPECT_NEAR(compare_rows(row, shifted).kl, 0, 1e-12);
  EXPECT_TRUE(compare_rows(row, shifted).same_top);
}

TEST(Divergence, StaysFiniteWhereExponentialsDoNot) {
  // All of p is on the first token, which q gives e^-800 of its weight: KL is 800 + log(1 + …).
  const std::vector<float> p = {900.0f, -900.0f};
  const std::vector<float> q = {0.0f, 800.0f};
  EXPECT_NEAR(compare_rows(p, q).kl, 800, 1e-9);
}

TEST(Divergence, TheTopTokenOfEqualLogitsIsTheLowest) {
  const std::vector<float> tied = {1.0f, 2.0f, 2.0f};
  EXPECT_TRUE(compare_rows(tied, std::vector<float>{0.0f, 1.0f, 0.5f}).same_top);
  EXPECT_FALSE(compare_rows(tied, std::vector<float>{0.0f, 0.5f, 1.0f}).same_top);
}

TEST(Divergence, ASummaryHasMeanPercentileMaximumAndShare) {
  std::vector<RowDivergence> rows;
  for (int i = 1; i <= 200; ++i) rows.push_back({static_cast<double>(201 - i), i % 4 != 0});
  const Divergence all = summarise(rows);
  EXPECT_EQ(all.rows, 200u);
  EXPECT_DOUBLE_EQ(all.kl_mean, 100.5);
  EXPECT_DOUBLE_EQ(all.kl_p99, 198);  // 198 of 200 rows are not above it
  EXPECT_DOUBLE_EQ(all.kl_max, 200);
  EXPECT_DOUBLE_EQ(all.same_top, 0.75);
  const Divergence one = summarise(std::vector<RowDivergence>{{0.5, true}});
  EXPECT_DOUBLE_EQ(one.kl_p99, 0.5);
  EXPECT_EQ(summarise({}).rows, 0u);
}

}  // namespace
}  // namespace pagoda::eval

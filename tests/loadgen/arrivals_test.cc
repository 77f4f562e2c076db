#include "loadgen/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pagoda::loadgen {
namespace {

std::vector<double> gaps_s(const ArrivalOptions& options, int count) {
  Arrivals arrivals(options);
  std::vector<double> gaps;
  std::int64_t before = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = arrivals.next_ns();
    gaps.push_back(static_cast<double>(at - before) * 1e-9);
    before = at;
  }
  return gaps;
}

TEST(ArrivalsTest, PoissonGapsAreExponential) {
  constexpr int kCount = 100000;
  constexpr double kRate = 50;
  const std::vector<double> gaps = gaps_s({.rate = kRate, .seed = 7}, kCount);
  double sum = 0;
  double squares = 0;
  int beyond_mean = 0;
  for (const double gap : gaps) {
    sum += gap;
    squares += gap * gap;
    beyond_mean += gap > 1 / kRate ? 1 : 0;
  }
  const double mean = sum / kCount;
  const double deviation = std::sqrt(squares / kCount - mean * mean);
  // Of an exponential: deviation = mean = 1 / rate, and 1 / e of the gaps exceed the mean. Bounds
  // are five standard errors.
  EXPECT_NEAR(mean * kRate, 1, 5 / std::sqrt(kCount));
  EXPECT_NEAR(deviation * kRate, 1, 0.03);
  EXPECT_NEAR(static_cast<double>(beyond_mean) / kCount, std::exp(-1), 0.01);
}

TEST(ArrivalsTest, ConstantArrivalsAreOneOverTheRateApart) {
  const std::vector<double> gaps = gaps_s({.kind = ArrivalKind::kConstant, .rate = 8}, 20);
  EXPECT_EQ(gaps[0], 0);
  for (std::size_t i = 1; i < gaps.size(); ++i) EXPECT_NEAR(gaps[i], 0.125, 1e-8);
}

TEST(ArrivalsTest, BurstsComeTogetherAndKeepTheRate) {
  const std::vector<double> gaps =
      gaps_s({.kind = ArrivalKind::kBurst, .rate = 10, .burst = 5}, 15);
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    EXPECT_NEAR(gaps[i], i > 0 && i % 5 == 0 ? 0.5 : 0, 1e-8) << i;
  }
}

TEST(ArrivalsTest, WithoutARateAllAreDueAtOnce) {
  for (const double gap : gaps_s({}, 10)) EXPECT_EQ(gap, 0);
}

TEST(ArrivalsTest, TheSeedDecides) {
  EXPECT_EQ(gaps_s({.rate = 3, .seed = 1}, 50), gaps_s({.rate = 3, .seed = 1}, 50));
  EXPECT_NE(gaps_s({.rate = 3, .seed = 1}, 50), gaps_s({.rate = 3, .seed = 2}, 50));
}

}  // namespace
}  // namespace pagoda::loadgen

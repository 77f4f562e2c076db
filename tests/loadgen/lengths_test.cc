#include "loadgen/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace pagoda::loadgen {
namespace {

std::vector<std::uint32_t> drawn(const Lengths& lengths, std::uint64_t count) {
  std::vector<std::uint32_t> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(lengths.draw(11, 5, i));
  return all;
}

double mean_of(const std::vector<std::uint32_t>& all) {
  double sum = 0;
  for (const std::uint32_t one : all) sum += one;
  return sum / static_cast<double>(all.size());
}

TEST(LengthsTest, EveryLengthOfARangeIsEquallyLikely) {
  const std::vector<std::uint32_t> all = drawn(Lengths::between(3, 6), 40000);
  for (const std::uint32_t length : {3u, 4u, 5u, 6u}) {
    // 10,000 expected; five deviations of a binomial are 433.
    const auto count = static_cast<double>(std::count(all.begin(), all.end(), length));
    EXPECT_NEAR(count, 10000, 433) << length;
  }
}

TEST(LengthsTest, LogNormalLengthsHaveTheirMeanAndMedian) {
  const std::vector<std::uint32_t> wide = drawn(Lengths::log_normal(200, 0.8, 1, 1u << 20), 200000);
  EXPECT_NEAR(mean_of(wide), 200, 3);
  std::vector<std::uint32_t> sorted = wide;
  std::sort(sorted.begin(), sorted.end());
  // The median is e^mu = mean / e^(sigma^2 / 2).
  EXPECT_NEAR(sorted[sorted.size() / 2], 200 / std::exp(0.32), 3);
}

TEST(LengthsTest, BoundsHold) {
  const std::vector<std::uint32_t> all = drawn(Lengths::log_normal(100, 2, 10, 300), 5000);
  EXPECT_EQ(*std::min_element(all.begin(), all.end()), 10U);
  EXPECT_EQ(*std::max_element(all.begin(), all.end()), 300U);
}

TEST(LengthsTest, ShareGptLikeLengthsStayWithinTheirBounds) {
  for (const std::uint32_t length : drawn(sharegpt_inputs(), 5000)) {
    EXPECT_GE(length, 4U);
    EXPECT_LE(length, 1024U);
  }
  // Cutting the tail off takes a little from the published means.
  EXPECT_NEAR(mean_of(drawn(sharegpt_inputs(), 50000)), 161, 30);
  EXPECT_NEAR(mean_of(drawn(sharegpt_outputs(), 50000)), 338, 30);
}

TEST(LengthsTest, TextIsANumberOrTwo) {
  EXPECT_EQ(Lengths::parse("17", "x").value().text(), "17");
  EXPECT_EQ(Lengths::parse("4-9", "x").value().text(), "4-9");
  for (const char* const wrong :
       {"", "0", "-1", "5-", "-5", "9-4", "4-9-2", "x", "1.5", "4 - 9", "99999999999", "0-4"}) {
    const Result<Lengths> parsed = Lengths::parse(wrong, "input_tokens");
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_TRUE(parsed.error().message.starts_with("`input_tokens`: ")) << parsed.error().message;
  }
}

}  // namespace
}  // namespace pagoda::loadgen

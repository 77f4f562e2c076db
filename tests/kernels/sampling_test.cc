// What sampling asks of a row of logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/random_values.h"
#include "kernels/select.h"

namespace pagoda::kernels {
namespace {

const std::vector<std::size_t> kCounts = {1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 100, 257, 1001};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t count, std::uint64_t seed) {
  std::vector<float> logits = random_values(count, seed);
  for (float& value : logits) value *= 12;
  return logits;
}

TEST(FiniteMax, IsTheLargestValueInEverySet) {
  for (const std::size_t count : kCounts) {
    const std::vector<float> x = random_logits(count, count);
    for (const KernelSet* const set : available_sets()) {
      EXPECT_EQ(set->finite_max(x.data(), count), *std::max_element(x.begin(), x.end()))
          << set->name << " count " << count;
    }
  }
}

TEST(FiniteMax, OfZerosIsThePositiveOne) {
  for (const KernelSet* const set : available_sets()) {
    std::vector<float> x(50, -0.0f);
    EXPECT_FALSE(std::signbit(set->finite_max(x.data(), x.size()))) << set->name;
    x[33] = 0.0f;
    EXPECT_FALSE(std::signbit(set->finite_max(x.data(), x.size()))) << set->name;
  }
}

TEST(FiniteMax, IsNaNWhereverAValueIsNotFinite) {
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    for (const std::size_t count : kCounts) {
      for (std::size_t at = 0; at < count; at += 1 + count / 40) {
        std::vector<float> x = random_logits(count, count);
        x[at] = bad;
        for (const KernelSet* const set : available_sets()) {
          EXPECT_TRUE(std::isnan(set->finite_max(x.data(), count)))
              << set->name << " " << bad << " at " << at << " of " << count;
        }
      }
    }
  }
}

TEST(FiniteMax, TheLargestFiniteValuesAreFinite) {
  const float largest = std::numeric_limits<float>::max();
  std::vector<float> x(100, -largest);
  for (const KernelSet* const set : available_sets()) {
    EXPECT_EQ(set->finite_max(x.data(), x.size()), -largest) << set->name;
  }
  x[71] = largest;
  for (const KernelSet* const set : available_sets()) {
    EXPECT_EQ(set->finite_max(x.data(), x.size()), largest) << set->name;
  }
}

TEST(ExpSum, FollowsTheFormulaAndEverySetGivesTheReferenceBits) {
  for (const std::size_t count : kCounts) {
    const std::vector<float> x = random_logits(count, count);
    const float best = *std::max_element(x.begin(), x.end());
    double exact = 0;
    for (const float value : x) exact += std::exp(double{value} - best);
    const float expected = ref_set().exp_sum(x.data(), count, best);
    EXPECT_NEAR(expected, exact, exact * 2e-6);
    for (const KernelSet* const set : available_sets()) {
      EXPECT_EQ(set->exp_sum(x.data(), count, best), expected) << set->name << " " << count;
    }
  }
}

TEST(SamplingWeights, TheReferenceFollowsTheFormula) {
  const std::vector<float> x = {5, 4, 3, -10, -30, -1e38f};
  std::vector<std::uint32_t> weights(x.size());
  ref_set().sampling_weights({.x = x.data(),
                              .count = x.size(),
                              .best = 5,
                              .inverse_temperature = 0.5f,
                              .min_p = 1e-4f,
                              .weights = weights.data()});
  EXPECT_EQ(weights[0], 1u << 30);
  EXPECT_NEAR(weights[1], std::exp(-0.5) * 0x1p30, 200);
  EXPECT_NEAR(weights[2], std::exp(-1.0) * 0x1p30, 200);
  EXPECT_NEAR(weights[3], std::exp(-7.5) * 0x1p30, 1) << "a share of 0.00055 is above the least";
  EXPECT_EQ(weights[4], 0u) << "a share of 2.5e-8 is below it";
  EXPECT_EQ(weights[5], 0u);
}

TEST(SamplingWeights, AShareEqualToTheLeastStays) {
  const std::vector<float> x(9, 1.0f);
  for (const KernelSet* const set : available_sets()) {
    std::vector<std::uint32_t> weights(x.size());
    const std::uint64_t total = set->sampling_weights(
        {.x = x.data(), .count = 9, .best = 1.0f, .min_p = 1.0f, .weights = weights.data()});
    EXPECT_EQ(total, std::uint64_t{9} << 30) << set->name;
  }
}

TEST(SamplingWeights, EverySetGivesTheReferenceWeightsAndTheirSum) {
  for (const std::size_t count : kCounts) {
    const std::vector<float> x = random_logits(count, count);
    for (const float inverse_temperature : {0.01f, 0.7f, 1.0f, 3.3f, 1e5f}) {
      for (const float min_p : {0.0f, 0.01f, 1.0f}) {
        std::vector<std::uint32_t> expected(count);
        SamplingWeights job = {.x = x.data(),
                               .count = count,
                               .best = *std::max_element(x.begin(), x.end()),
                               .inverse_temperature = inverse_temperature,
                               .min_p = min_p,
                               .weights = expected.data()};
        ref_set().sampling_weights(job);
        const std::uint64_t sum =
            std::accumulate(expected.begin(), expected.end(), std::uint64_t{0});
        for (const KernelSet* const set : available_sets()) {
          std::vector<std::uint32_t> weights(count);
          job.weights = weights.data();
          EXPECT_EQ(set->sampling_weights(job), sum) << set->name << " " << count;
          EXPECT_EQ(weights, expected) << set->name << " " << count;
        }
      }
    }
  }
}

TEST(MassFrom, AddsTheWeightsOfValuesThatReachTheLeastInEverySet) {
  for (const std::size_t count : kCounts) {
    std::vector<float> x = random_logits(count, count);
    for (float& value : x) value = std::round(value);  // ties with the bound
    std::vector<std::uint32_t> weights(count, 1u << 30);
    for (std::size_t i = 0; i < count; i += 3) weights[i] = static_cast<std::uint32_t>(i);
    for (const float x_min : {-kInfinity, -3.0f, 0.0f, 4.0f, kInfinity}) {
      std::uint64_t expected = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (x[i] >= x_min) expected += weights[i];
      }
      for (const KernelSet* const set : available_sets()) {
        EXPECT_EQ(set->mass_from(x.data(), weights.data(), count, x_min), expected)
            << set->name << " " << count << " from " << x_min;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels

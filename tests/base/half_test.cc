#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pagoda {
namespace {

// Computes IEEE 754 binary16 from its definition: (-1)^s * 2^(e - 15) * (1 + m / 1024).
double half_by_definition(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits >> 10) & 31;
  const double mantissa = bits & 1023;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryFiniteHalfHasTheValueOfItsDefinition) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (((half >> 10) & 31) == 31) continue;
    ASSERT_EQ(float_from_fp16(half), half_by_definition(half)) << bits;
  }
}

TEST(Half, EveryHalfSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (std::isnan(float_from_fp16(half))) {
      ASSERT_TRUE(std::isnan(float_from_fp16(fp16_from_float(float_from_fp16(half))))) << bits;
      continue;
    }
    ASSERT_EQ(fp16_from_float(float_from_fp16(half)), half) << bits;
  }
}

TEST(Half, RoundsToTheNearerNeighbourAndTiesToEven) {
  for (std::uint16_t low = 0; low < 0x7BFF; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const float middle =
        static_cast<float>((half_by_definition(low) + half_by_definition(high)) / 2);
    const float infinity = std::numeric_limits<float>::infinity();
    ASSERT_EQ(fp16_from_float(middle), (low & 1) == 0 ? low : high) << low;
    ASSERT_EQ(fp16_from_float(std::nextafter(middle, 0.0f)), low) << low;
    ASSERT_EQ(fp16_from_float(std::nextafter(middle, infinity)), high) << low;
    ASSERT_EQ(fp16_from_float(-middle), fp16_from_float(middle) | 0x8000) << low;
  }
}

TEST(Half, OverflowBecomesInfinity) {
  EXPECT_EQ(fp16_from_float(65519.0f), 0x7BFF);
  EXPECT_EQ(fp16_from_float(65520.0f), 0x7C00);
  EXPECT_EQ(fp16_from_float(-1e30f), 0xFC00);
  EXPECT_TRUE(std::isinf(float_from_fp16(0x7C00)));
}

TEST(Half, BrainFloatIsTheUpperHalfRoundedToEven) {
  EXPECT_EQ(bf16_from_float(1.0f), 0x3F80);
  EXPECT_EQ(bf16_from_float(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // tie: even stays
  EXPECT_EQ(bf16_from_float(std::bit_cast<float>(0x3F818000u)), 0x3F82);  // tie: odd goes up
  EXPECT_EQ(bf16_from_float(std::bit_cast<float>(0x3F808001u)), 0x3F81);
  EXPECT_EQ(bf16_from_float(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::nanf("")))));
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = float_from_bf16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(bf16_from_float(value), bits);
  }
}

}  // namespace
}  // namespace pagoda

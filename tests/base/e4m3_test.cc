#include "base/e4m3.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pagoda {
namespace {

// Computes OCP E4M3 from its definition: (-1)^s * 2^(e - 7) * (1 + m / 8), subnormal below 2^-6.
double by_definition(std::uint8_t bits) {
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  const int exponent = (bits >> 3) & 15;
  const double mantissa = bits & 7;
  if (exponent == 0) return sign * std::ldexp(mantissa, -9);
  return sign * std::ldexp(8 + mantissa, exponent - 10);
}

TEST(E4M3, EveryNumberHasTheValueOfItsDefinitionAndSurvives) {
  for (std::uint32_t bits = 0; bits < 0x100; ++bits) {
    const auto code = static_cast<std::uint8_t>(bits);
    const float value = float_from_e4m3(code);
    if ((bits & 0x7F) == 0x7F) {
      ASSERT_TRUE(std::isnan(value));
    } else {
      ASSERT_EQ(value, by_definition(code)) << bits;
    }
    ASSERT_EQ(e4m3_from_float(value), code) << bits;
  }
}

TEST(E4M3, RoundsToTheNearerNeighbourAndTiesToEven) {
  for (std::uint8_t low = 0; low < 0x7E; ++low) {
    const auto high = static_cast<std::uint8_t>(low + 1);
    const float middle = (float_from_e4m3(low) + float_from_e4m3(high)) / 2;
    const float infinity = std::numeric_limits<float>::infinity();
    ASSERT_EQ(e4m3_from_float(std::nextafter(middle, 0.0f)), low) << +low;
    ASSERT_EQ(e4m3_from_float(middle), low % 2 == 0 ? low : high) << +low;
    ASSERT_EQ(e4m3_from_float(std::nextafter(middle, infinity)), high) << +low;
    ASSERT_EQ(e4m3_from_float(-middle), (low % 2 == 0 ? low : high) | 0x80) << +low;
  }
}

TEST(E4M3, WhatIsTooLargeBecomesTheLargest) {
  for (const float value : {448.0f, 449.0f, 464.0f, 1e9f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(float_from_e4m3(e4m3_from_float(value)), kE4M3Max);
    EXPECT_EQ(float_from_e4m3(e4m3_from_float(-value)), -kE4M3Max);
  }
}

}  // namespace
}  // namespace pagoda

#include "kv/memory/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/e4m3.h"
#include "base/e5m2.h"
#include "base/half.h"
#include "base/random.h"

namespace pagoda::kv::memory {
namespace {

const std::vector<float> kValues = {0.0f, -0.0f, 1.0f, -2.5f, 1.0009765625f, 3.14159274f, 1e-7f};

std::vector<float> round_trip(Element element) {
  std::vector<std::byte> row(kValues.size() * unit_bytes(element));
  std::vector<float> back(kValues.size());
  encode_row(element, kValues.data(), kValues.size(), {row.data()});
  decode_row(element, {row.data()}, kValues.size(), back.data());
  return back;
}

TEST(Codec, FullPrecisionKeepsEveryValue) { EXPECT_EQ(round_trip(Element::kF32), kValues); }

TEST(Codec, HalfPrecisionKeepsElevenBits) {
  // 1.0009765625 = 1 + 2^-10 is a half; pi rounds to 3.140625; 1e-7 to 2 * 2^-24.
  EXPECT_EQ(round_trip(Element::kF16),
            (std::vector<float>{0.0f, -0.0f, 1.0f, -2.5f, 1.0009765625f, 3.140625f, 0x1p-23f}));
}

TEST(Codec, BrainFloatKeepsEightBits) {
  // 1 + 2^-10 rounds to 1; pi to 3.140625 (201 / 64); 1e-7 to 215 * 2^-31.
  EXPECT_EQ(round_trip(Element::kBF16),
            (std::vector<float>{0.0f, -0.0f, 1.0f, -2.5f, 1.0f, 3.140625f, 215 * 0x1p-31f}));
}

// The row's largest, 3.14159274, is at most 448 * 2^-7 = 3.5 and above half of it.
TEST(Codec, EightBitFloatsKeepFourBitsTimesThePowerOfTwoOfTheirRow) {
  std::vector<std::byte> row(kValues.size());
  std::uint16_t scale = 0;
  const Row to = {.data = row.data(), .scale = reinterpret_cast<std::byte*>(&scale)};
  encode_row(Element::kE4M3, kValues.data(), kValues.size(), to);
  EXPECT_EQ(float_from_fp16(scale), 0x1p-7f);
  std::vector<float> back(kValues.size());
  decode_row(Element::kE4M3, to, kValues.size(), back.data());
  EXPECT_EQ(back, (std::vector<float>{0.0f, -0.0f, 1.0f, -2.5f, 1.0f, 3.25f, 0.0f}));
}

TEST(Codec, ARowOfEightBitFloatsHasTheSmallestScaleThatHoldsItsLargest) {
  struct Row8 {
    float largest;
    float scale;
  };
  const Row8 rows[] = {{448.0f, 1.0f},
                       {std::nextafter(448.0f, 1e9f), 2.0f},
                       {-449.0f, 2.0f},
                       {224.0f, 0.5f},
                       {57344.0f, 128.0f},
                       {65504.0f, 128.0f},
                       {0.0f, 0x1p-15f},
                       {1e-9f, 0x1p-15f},
                       {448 * 0x1p-15f, 0x1p-15f},
                       {448.5f * 0x1p-15f, 0x1p-14f}};
  for (const auto& [largest, expected] : rows) {
    const float values[] = {0.0f, largest, largest / 3};
    std::vector<std::byte> row(3);
    std::uint16_t scale = 0;
    encode_row(Element::kE4M3, values, 3,
               {.data = row.data(), .scale = reinterpret_cast<std::byte*>(&scale)});
    EXPECT_EQ(float_from_fp16(scale), expected) << largest;
  }
}

TEST(Codec, ARowWithAStepLeavesTheElementsBetween) {
  for (const Element element : {Element::kF32, Element::kF16, Element::kBF16}) {
    const std::size_t bytes = unit_bytes(element);
    std::vector<std::byte> pair(2 * kValues.size() * bytes, std::byte{0xEE});
    std::vector<std::byte> row(kValues.size() * bytes);
    encode_row(element, kValues.data(), kValues.size(), {.data = pair.data() + bytes, .step = 2});
    encode_row(element, kValues.data(), kValues.size(), {row.data()});
    for (std::size_t i = 0; i < kValues.size(); ++i) {
      for (std::size_t b = 0; b < bytes; ++b) {
        ASSERT_EQ(pair[2 * i * bytes + b], std::byte{0xEE});
        ASSERT_EQ(pair[(2 * i + 1) * bytes + b], row[i * bytes + b]);
      }
    }
    std::vector<float> back(kValues.size());
    decode_row(element, {.data = pair.data() + bytes, .step = 2}, kValues.size(), back.data());
    EXPECT_EQ(back, round_trip(element));
  }
}

// A row of integers that was encoded: the scales of its groups, and its numbers.
struct KeptRow {
  std::vector<float> scales;
  std::vector<float> values;
};
KeptRow kept(Element element, const std::vector<float>& values) {
  std::vector<std::byte> bytes(row_bytes(element, values.size()));
  std::vector<std::uint16_t> scales(scale_groups(element, values.size()));
  const Row row = {.data = bytes.data(), .scale = reinterpret_cast<std::byte*>(scales.data())};
  encode_row(element, values.data(), values.size(), row);
  KeptRow result = {{}, std::vector<float>(values.size())};
  for (const std::uint16_t scale : scales) result.scales.push_back(float_from_fp16(scale));
  decode_row(element, row, values.size(), result.values.data());
  return result;
}

std::vector<float> random_row(std::uint64_t index, std::size_t count, float size) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(2 * random_unit(9, index, i) - 1) * size;
  }
  return values;
}

// A scale is an fp16: of 11 bits, or a multiple of 2^-24.
TEST(Codec, EightBitIntegersAreWithinHalfAStepOfWhatTheyStandFor) {
  for (std::uint64_t index = 0; index < 200; ++index) {
    const float size = std::ldexp(1.0f, static_cast<int>(index % 24) - 12);
    const std::vector<float> values = random_row(index, 64, size);
    const KeptRow row = kept(Element::kInt8, values);
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::fabs(value));
    const float scale = row.scales[0];
    ASSERT_GE(scale, largest / 127);
    ASSERT_LE(scale, std::max(largest / 127 * (1 + 0x1p-10f), largest / 127 + 0x1p-24f));
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(row.values[i], values[i], scale * 0.5f * 1.0001f);
    }
  }
}

// Of numbers as levels times one scale: what is left where numbers times `factor` go to the nearest
// levels and the scale is the one of least squares.
double least_error(const float* values, double factor) {
  double product = 0;
  double square = 0;
  double size = 0;
  for (std::size_t i = 0; i < kScaleGroup; ++i) {
    const double x = double{values[i]} * factor;
    const auto* const nearest =
        std::min_element(std::begin(kInt4Levels), std::end(kInt4Levels),
                         [&](int a, int b) { return std::abs(a - x) < std::abs(b - x); });
    product += double{values[i]} * *nearest;
    square += double{1} * *nearest * *nearest;
    size += double{values[i]} * values[i];
  }
  return size - product * product / square;
}

TEST(Codec, GroupsOfFourBitIntegersHaveTheScaleAndCodesOfLeastError) {
  for (std::uint64_t index = 0; index < 200; ++index) {
    std::vector<float> values = random_row(index, 2 * kScaleGroup, 1.0f);
    // Some groups have one large number.
    if (index % 2 == 1) values[index % values.size()] *= 4;
    const float size = std::ldexp(1.0f, static_cast<int>(index % 16) - 5);
    for (float& value : values) value *= size;
    const KeptRow row = kept(Element::kInt4, values);
    ASSERT_EQ(row.scales.size(), 2u);
    for (const std::size_t first : {0u, kScaleGroup}) {
      float largest = 0;
      double error = 0;
      for (std::size_t i = first; i < first + kScaleGroup; ++i) {
        largest = std::max(largest, std::fabs(values[i]));
        error += std::pow(double{values[i]} - row.values[i], 2);
      }
      double least = least_error(values.data() + first, kInt4Tries[0] / largest);
      for (const float factor : kInt4Tries) {
        least = std::min(least, least_error(values.data() + first, factor / largest));
      }
      // The scale is rounded to 11 bits.
      ASSERT_LE(error, least * 1.001 + std::pow(largest * 0x1p-10, 2)) << index;
    }
  }
}

TEST(Codec, IntegersKeepTheOrderOfNumbers) {
  for (const Element element : {Element::kInt8, Element::kInt4}) {
    for (std::uint64_t index = 0; index < 100; ++index) {
      std::vector<float> values = random_row(index, kScaleGroup, 3.0f);
      std::sort(values.begin(), values.end());
      const KeptRow row = kept(element, values);
      ASSERT_TRUE(std::is_sorted(row.values.begin(), row.values.end()));
      ASSERT_GT(std::set<float>(row.values.begin(), row.values.end()).size(),
                element == Element::kInt8 ? 20u : 7u);
    }
  }
}

// All codes, spelt out: -127, 0 and 127 of 8 bits; the levels of 4 bits times a scale a group.
TEST(Codec, IntegersStandForTheseNumbers) {
  EXPECT_EQ(kept(Element::kInt8, {127, -127, 0, 1, -1.5f, 2.5f}).values,
            (std::vector<float>{127, -127, 0, 1, -2, 2}));
  const std::vector<float> levels = {-127, -97, -76, -59, -44, -30, -18, -6,
                                     6,    18,  30,  44,  59,  76,  97,  127};
  std::vector<float> values;
  for (const float scale : {0.5f, 0.5f, 0.03125f, 0.03125f}) {
    for (const float level : levels) values.push_back(level * scale);
  }
  const KeptRow row = kept(Element::kInt4, values);
  EXPECT_EQ(row.scales, (std::vector<float>{0.5f, 0.03125f}));
  EXPECT_EQ(row.values, values);
}

TEST(Codec, RowsOfZerosTinyNumbersAndNaNHaveDefinedIntegers) {
  for (const Element element : {Element::kInt8, Element::kInt4}) {
    for (const float zero : {0.0f, -0.0f}) {
      const KeptRow row = kept(element, std::vector<float>(32, zero));
      EXPECT_EQ(row.scales[0], 0.0f);
      for (const float value : row.values) EXPECT_EQ(value, 0.0f);
    }
    // A quotient that is no normal number is 0 in all kernel sets.
    EXPECT_EQ(kept(element, std::vector<float>(32, 1e-37f)).scales[0], 0.0f);
    // The smallest scale there is, or nothing.
    EXPECT_EQ(kept(element, std::vector<float>(32, 1e-9f)).scales[0],
              element == Element::kInt8 ? 0x1p-24f : 0.0f);
    std::vector<float> values(32, 1.0f);
    values[17] = NAN;
    const KeptRow row = kept(element, values);
    EXPECT_TRUE(std::isnan(row.scales[0]));
    for (const float value : row.values) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Codec, NoByteOfFourBitIntegersHasTwoDimensionsOfDifferentRows) {
  std::vector<std::byte> bytes(32);
  std::vector<std::uint16_t> scales(2);
  const Row row = {.data = bytes.data(), .scale = reinterpret_cast<std::byte*>(scales.data())};
  std::vector<float> values(64);
  for (std::size_t i = 0; i < 64; ++i) values[i] = kInt4Levels[i % 16];
  encode_row(Element::kInt4, values.data(), 64, row);
  // Dimensions 0 and 16, 1 and 17, …, 32 and 48, …: the same codes here.
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(bytes[i], static_cast<std::byte>(i % 16 * 17)) << i;
  }
}

// The formats' tables (OCP 8-bit floating point): all codes, and halfway between two the even one.
TEST(Codec, E5M2IsTheUpperByteOfAHalf) {
  for (int code = 0; code < 256; ++code) {
    const float value = float_from_e5m2(static_cast<std::uint8_t>(code));
    if (std::isnan(value)) {
      EXPECT_GT(code & 0x7F, 0x7C);
      continue;
    }
    EXPECT_EQ(e5m2_from_float(value), code);
    const int exponent = code >> 2 & 31;
    const float mantissa = static_cast<float>(code & 3) / 4;
    const float expected = exponent == 31  ? HUGE_VALF
                           : exponent == 0 ? std::ldexp(mantissa, -14)
                                           : std::ldexp(1 + mantissa, exponent - 15);
    EXPECT_EQ(value, (code & 0x80) != 0 ? -expected : expected);
    if ((code & 0x7F) >= 0x7B) continue;
    const float next = float_from_e5m2(static_cast<std::uint8_t>(code + 1));
    EXPECT_EQ(e5m2_from_float((value + next) / 2), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(e5m2_from_float(std::nextafter((value + next) / 2, value)), code);
  }
  EXPECT_EQ(e5m2_from_float(61440.0f), 0x7C);
  EXPECT_EQ(e5m2_from_float(std::nextafter(61440.0f, 0.0f)), 0x7B);
}

// A larger value never becomes a smaller one: over all codes, what lies between two of them, and
// what is beyond.
TEST(Codec, RoundTripsOfEightBitFloatsAreMonotone) {
  const auto expect_monotone = [](auto from_float, auto to_float, float largest) {
    float last_value = -2 * largest;
    float last_result = to_float(from_float(last_value));
    std::size_t results = 0;
    for (const float sign : {-1.0f, 1.0f}) {
      for (int i = 0; i < 1 << 16; ++i) {
        // Bits of floats from 2^-20 to twice the largest, away from 0 or towards it.
        const double share = (sign > 0 ? i : (1 << 16) - 1 - i) / double{(1 << 16) - 1};
        const double exponent = -20 + share * (std::log2(2.0 * largest) + 20);
        const float value = sign * static_cast<float>(std::exp2(exponent));
        const float result = to_float(from_float(value));
        ASSERT_GE(value, last_value);
        ASSERT_GE(result, last_result) << value;
        results += result > last_result ? 1 : 0;
        last_value = value;
        last_result = result;
      }
    }
    EXPECT_GT(results, 200u) << "of 256 codes";
  };
  expect_monotone(e4m3_from_float, float_from_e4m3, kE4M3Max);
  expect_monotone(e5m2_from_float, float_from_e5m2, kE5M2Max);
}

}  // namespace
}  // namespace pagoda::kv::memory

#include "kv/memory/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/half.h"

namespace pagoda::kv::memory {
namespace {

const std::vector<float> kValues = {0.0f, -0.0f, 1.0f, -2.5f, 1.0009765625f, 3.14159274f, 1e-7f};

std::vector<float> round_trip(Element element) {
  std::vector<std::byte> row(kValues.size() * element_bytes(element));
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
  const Row to = {row.data(), 1, 2, reinterpret_cast<std::byte*>(&scale)};
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
    encode_row(Element::kE4M3, values, 3, {row.data(), 1, 2, reinterpret_cast<std::byte*>(&scale)});
    EXPECT_EQ(float_from_fp16(scale), expected) << largest;
  }
}

TEST(Codec, ARowWithAStepLeavesTheElementsBetween) {
  for (const Element element : {Element::kF32, Element::kF16, Element::kBF16}) {
    const std::size_t bytes = element_bytes(element);
    std::vector<std::byte> pair(2 * kValues.size() * bytes, std::byte{0xEE});
    std::vector<std::byte> row(kValues.size() * bytes);
    encode_row(element, kValues.data(), kValues.size(), {pair.data() + bytes, 2});
    encode_row(element, kValues.data(), kValues.size(), {row.data()});
    for (std::size_t i = 0; i < kValues.size(); ++i) {
      for (std::size_t b = 0; b < bytes; ++b) {
        ASSERT_EQ(pair[2 * i * bytes + b], std::byte{0xEE});
        ASSERT_EQ(pair[(2 * i + 1) * bytes + b], row[i * bytes + b]);
      }
    }
    std::vector<float> back(kValues.size());
    decode_row(element, {pair.data() + bytes, 2}, kValues.size(), back.data());
    EXPECT_EQ(back, round_trip(element));
  }
}

}  // namespace
}  // namespace pagoda::kv::memory

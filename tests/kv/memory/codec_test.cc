#include "kv/memory/codec.h"

#include <gtest/gtest.h>

#include <vector>

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

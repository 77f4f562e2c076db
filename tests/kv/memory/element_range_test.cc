#include "kv/memory/element_range.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kv/memory/codec.h"

namespace pagoda::kv::memory {
namespace {

// A number after it was kept in a row of its own.
float kept(Element element, float value) {
  std::array<std::byte, 4> data = {};
  std::array<std::byte, 2> scale = {};
  const Row row = {.data = data.data(), .scale = scale.data()};
  encode_row(element, &value, 1, row);
  float decoded = 0;
  decode_row(element, row, 1, &decoded);
  return decoded;
}

// The largest numbers of IEEE 754's formats, of bfloat16, and of e4m3 (448) times 2^7.
TEST(ElementRange, EndsWhereTheElementHasNoNumberAnyMore) {
  struct Case {
    const char* name;
    Element element;
    float largest;
  };
  const Case kCases[] = {
      {"fp32", Element::kF32, 0x1.FFFFFEp127f}, {"fp16", Element::kF16, 65504.0f},
      {"bf16", Element::kBF16, 0x1.FEp127f},    {"fp8", Element::kE4M3, 448.0f * 128},
      {"fp8_e5m2", Element::kE5M2, 57344.0f},   {"int8", Element::kInt8, 127 * 65504.0f}};
  for (const Case& c : kCases) {
    const float first = first_infinite(c.element);
    const float last = std::nextafter(first, 0.0f);
    for (const float sign : {1.0f, -1.0f}) {
      EXPECT_EQ(kept(c.element, sign * last), sign * c.largest) << c.name;
      // Beyond it numbers are infinite or none, and those of E4M3 cut off.
      const float beyond = kept(c.element, sign * first);
      if (c.element == Element::kE4M3) {
        EXPECT_EQ(beyond, sign * c.largest) << c.name;
      } else {
        EXPECT_FALSE(std::isfinite(beyond)) << c.name;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::kv::memory

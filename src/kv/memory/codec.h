// Rows of floats to the cache's element types and back, one value at a time. These define the
// bits a cached value has; faster versions in kernels/ must equal them.
//
// kE4M3: a value is a code (base/e4m3.h) times its row's 2^e, where e, from -15 to 7, is the
//        smallest for which the row's largest magnitude is at most 448 * 2^e. So every value is an
//        fp16.
// kE5M2: a value is a code (base/e5m2.h).
// kInt8: a value is a code from -127 to 127 times its row's scale, which is the smallest fp16 that
//        is at least largest / 127. The code is x * (1 / scale) to the nearest integer, ties to
//        even.
// kInt4: a value is kInt4Levels[u], u from 0 to 15, times the scale of its group of kScaleGroup
//        dimensions. Rotated numbers are nearly normally distributed: levels are close where
//        numbers are many. With z = x * (1 / largest) of the group, codes are tried that are
//        nearest to z * f for each f of kInt4Tries: halfway between two the one nearer to 0, of
//        zeros the one of their sign. The best, the first of equals, has the largest a * (a / b),
//        a being the sum of level * z (halves of the group's products are added to each other
//        until one is left) and b that of level * level: its error is least once the scale is
//        a / b. The scale is the fp16 nearest to a / b * largest. A group of numbers below
//        kInt4Smallest has scale 0.
// Rows of zeros, and of kInt8 those of numbers below 2^-119, have scale 0: all values are 0. A row
// (of kInt4, a group) with a NaN has scale NaN and any codes. Rows of larger magnitudes than their
// element has are cut off (element_range.h); nobody stores them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

void encode_row(Element element, const float* values, std::size_t count, Row row);
void decode_row(Element element, Row row, std::size_t count, float* values);

inline constexpr int kInt8CodeMax = 127;
inline constexpr std::size_t kInt4Codes = 16;
inline constexpr std::int8_t kInt4Levels[kInt4Codes] = {-127, -97, -76, -59, -44, -30, -18, -6,
                                                        6,    18,  30,  44,  59,  76,  97,  127};
inline constexpr float kInt4Tries[] = {127, 135, 144, 154};
inline constexpr float kInt4Smallest = 0x1p-60f;
// The dimension that stands in the low half of byte `unit` of a row of kInt4; the one in its high
// half is kInt4HalfStep further.
inline constexpr std::size_t kInt4HalfStep = 16;
constexpr std::size_t int4_dimension(std::size_t unit) {
  return unit / kInt4HalfStep * 2 * kInt4HalfStep + unit % kInt4HalfStep;
}

// Scales a row of kInt8: a number becomes the code nearest to itself times `inverse`.
struct IntegerScale {
  std::uint16_t scale;  // fp16
  float inverse;        // codes for 1.0; 0 where the scale is 0 or NaN
};
// Returns the scale of a row whose largest magnitude is `largest`; NaN stands for a row with a NaN.
IntegerScale integer_scale(float largest);

}  // namespace pagoda::kv::memory

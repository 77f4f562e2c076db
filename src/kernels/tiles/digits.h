// 32 floats as integers of two digits and a scale (kernels/operand.h).
#pragma once

#include "kernels/operand.h"
#include "kernels/ref/groups.h"
#include "kernels/tiles/simd.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

#if defined(__AVX512F__)

// The digits of 16 columns; returns the sum of their integers.
[[gnu::always_inline]] inline std::int32_t put_half(F32x16 x, F32x16 inverse, std::int8_t* high,
                                                    std::int8_t* low) {
  const __m512i n = _mm512_cvtps_epi32((x * inverse).v);
  const __m512i high_digits = _mm512_srai_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(8)), 4);
  const __m512i low_digits = _mm512_sub_epi32(n, _mm512_slli_epi32(high_digits, 4));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(high), _mm512_cvtepi32_epi8(high_digits));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(low), _mm512_cvtepi32_epi8(low_digits));
  return _mm512_reduce_add_epi32(n);
}

[[gnu::always_inline]] inline void put_digits(F32x16 first, F32x16 second, GroupDigits& digits,
                                              GroupScales& scales) {
  constexpr float kSmallest = 0x1p-100f;
  // As integers, magnitudes are in order and NaN is above all.
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  const __m512i largest_each =
      _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(first.v), magnitude),
                       _mm512_and_si512(_mm512_castps_si512(second.v), magnitude));
  const float largest = __builtin_bit_cast(float, _mm512_reduce_max_epu32(largest_each));
  if (!(largest >= kSmallest && largest < __builtin_inff())) {
    const float scale = largest < kSmallest ? 0.0f : __builtin_nanf("");
    digits = {};
    scales = {.scale = scale, .sum = scale, .half_sums = {scale, scale}};
    return;
  }
  const F32x16 inverse = broadcast(static_cast<float>(kDigitsMax) / largest);
  const float scale = largest / static_cast<float>(kDigitsMax);
  const std::int32_t sums[2] = {
      put_half(first, inverse, digits.high, digits.low),
      put_half(second, inverse, digits.high + kLanes, digits.low + kLanes)};
  scales = {
      .scale = scale,
      .sum = scale * static_cast<float>(sums[0] + sums[1]),
      .half_sums = {scale * static_cast<float>(sums[0]), scale * static_cast<float>(sums[1])}};
}

#else

inline void put_digits(const F32x16& first, const F32x16& second, GroupDigits& digits,
                       GroupScales& scales) {
  float x[kGroup];
  store(x, first);
  store(x + kLanes, second);
  ref::put_digits(x, kGroup, digits, scales);
}

#endif

}  // namespace pagoda::kernels::PAGODA_TILE_SET

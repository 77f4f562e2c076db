// Eight floats at once, on AVX2 (one register) or NEON (two). Nothing else in fp32/ knows which.
// Each operation is the IEEE one lane by lane, so both give the bits of the scalar reference.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exp.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#else
#error "kernels/fp32 needs AVX2 or NEON"
#endif

// Before a loop of few, fixed turns: written out, arrays it indexes can live in registers.
#if defined(__clang__)
#define PAGODA_UNROLL _Pragma("unroll")
#else
#define PAGODA_UNROLL _Pragma("GCC unroll 16")
#endif

namespace pagoda::kernels::fp32 {

inline constexpr std::size_t kLanes = 8;

#if defined(__AVX2__)

struct F32x8 {
  __m256 v;
};

inline F32x8 broadcast(float x) { return {_mm256_set1_ps(x)}; }
inline F32x8 load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline void store(float* p, F32x8 a) { _mm256_storeu_ps(p, a.v); }
inline F32x8 operator+(F32x8 a, F32x8 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline F32x8 operator-(F32x8 a, F32x8 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline F32x8 operator*(F32x8 a, F32x8 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline F32x8 operator/(F32x8 a, F32x8 b) { return {_mm256_div_ps(a.v, b.v)}; }
// a * b + c, rounded once
inline F32x8 fma(F32x8 a, F32x8 b, F32x8 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline F32x8 max(F32x8 a, F32x8 b) { return {_mm256_max_ps(a.v, b.v)}; }

// min(x, top), a NaN in x staying NaN
inline F32x8 clamp_above(F32x8 x, float top) { return {_mm256_min_ps(broadcast(top).v, x.v)}; }
// 0 in lanes where x < limit, else value
inline F32x8 zero_where_below(F32x8 x, float limit, F32x8 value) {
  return {_mm256_andnot_ps(_mm256_cmp_ps(x.v, broadcast(limit).v, _CMP_LT_OQ), value.v)};
}
// Adds the low bits of `steps` to the exponent of `value`.
inline F32x8 scale_by_power(F32x8 value, F32x8 steps) {
  const __m256i power = _mm256_slli_epi32(_mm256_castps_si256(steps.v), 23);
  return {_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(value.v), power))};
}

inline float fold_sum(F32x8 a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline F32x8 load_fp16(const std::byte* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline F32x8 load_bf16(const std::byte* p) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))};
}
inline void store_fp16(std::byte* p, F32x8 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
inline F32x8 from_int8(const std::int8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
}
// The low or high nibbles of 8 bytes
inline F32x8 from_low_nibbles(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_and_si128(bytes, _mm_set1_epi8(0x0F))))};
}
inline F32x8 from_high_nibbles(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(0x0F))))};
}

#else  // NEON

struct F32x8 {
  float32x4_t low;
  float32x4_t high;
};

inline F32x8 broadcast(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
inline F32x8 load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
inline void store(float* p, F32x8 a) {
  vst1q_f32(p, a.low);
  vst1q_f32(p + 4, a.high);
}
inline F32x8 operator+(F32x8 a, F32x8 b) {
  return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}
inline F32x8 operator-(F32x8 a, F32x8 b) {
  return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
}
inline F32x8 operator*(F32x8 a, F32x8 b) {
  return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}
inline F32x8 operator/(F32x8 a, F32x8 b) {
  return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
}
// a * b + c, rounded once
inline F32x8 fma(F32x8 a, F32x8 b, F32x8 c) {
  return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}
inline F32x8 max(F32x8 a, F32x8 b) { return {vmaxq_f32(a.low, b.low), vmaxq_f32(a.high, b.high)}; }

// min(x, top), a NaN in x staying NaN
inline F32x8 clamp_above(F32x8 x, float top) {
  return {vminq_f32(x.low, vdupq_n_f32(top)), vminq_f32(x.high, vdupq_n_f32(top))};
}
inline float32x4_t zero_where_below(float32x4_t x, float limit, float32x4_t value) {
  const uint32x4_t below = vcltq_f32(x, vdupq_n_f32(limit));
  return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value), below));
}
// 0 in lanes where x < limit, else value
inline F32x8 zero_where_below(F32x8 x, float limit, F32x8 value) {
  return {zero_where_below(x.low, limit, value.low), zero_where_below(x.high, limit, value.high)};
}
inline float32x4_t scale_by_power(float32x4_t value, float32x4_t steps) {
  const uint32x4_t power = vshlq_n_u32(vreinterpretq_u32_f32(steps), 23);
  return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(value), power));
}
// Adds the low bits of `steps` to the exponent of `value`.
inline F32x8 scale_by_power(F32x8 value, F32x8 steps) {
  return {scale_by_power(value.low, steps.low), scale_by_power(value.high, steps.high)};
}

inline float fold_sum(F32x8 a) {
  const float32x4_t four = vaddq_f32(a.low, a.high);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

inline F32x8 load_fp16(const std::byte* p) {
  const float16x8_t halves = vreinterpretq_f16_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p)));
  return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}
inline F32x8 load_bf16(const std::byte* p) {
  const uint16x8_t halves = vreinterpretq_u16_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p)));
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(halves), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(halves, 16))};
}
inline void store_fp16(std::byte* p, F32x8 a) {
  const float16x8_t halves = vcvt_high_f16_f32(vcvt_f16_f32(a.low), a.high);
  vst1q_u8(reinterpret_cast<uint8_t*>(p), vreinterpretq_u8_f16(halves));
}
inline F32x8 from_int16(int16x8_t x) {
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))), vcvtq_f32_s32(vmovl_high_s16(x))};
}
inline F32x8 from_int8(const std::int8_t* p) { return from_int16(vmovl_s8(vld1_s8(p))); }
// The low or high nibbles of 8 bytes
inline F32x8 from_low_nibbles(const std::uint8_t* p) {
  return from_int16(vreinterpretq_s16_u16(vmovl_u8(vand_u8(vld1_u8(p), vdup_n_u8(0x0F)))));
}
inline F32x8 from_high_nibbles(const std::uint8_t* p) {
  return from_int16(vreinterpretq_s16_u16(vmovl_u8(vshr_n_u8(vld1_u8(p), 4))));
}

#endif

// Sixteen floats: two F32x8 in lock step. For long chains of operations, which one alone cannot
// keep the pipelines full with (the weights of a row of 50,000: 64 us by F32x8, 54 us by this, on a
// 2.6 GHz Neoverse V1).
struct F32x8x2 {
  F32x8 low;
  F32x8 high;
};

inline F32x8x2 operator+(F32x8x2 a, F32x8x2 b) { return {a.low + b.low, a.high + b.high}; }
inline F32x8x2 operator-(F32x8x2 a, F32x8x2 b) { return {a.low - b.low, a.high - b.high}; }
inline F32x8x2 operator*(F32x8x2 a, F32x8x2 b) { return {a.low * b.low, a.high * b.high}; }
inline F32x8x2 fma(F32x8x2 a, F32x8x2 b, F32x8x2 c) {
  return {fma(a.low, b.low, c.low), fma(a.high, b.high, c.high)};
}
inline F32x8x2 max(F32x8x2 a, F32x8x2 b) { return {max(a.low, b.low), max(a.high, b.high)}; }
inline F32x8x2 scale_by_power(F32x8x2 value, F32x8x2 steps) {
  return {scale_by_power(value.low, steps.low), scale_by_power(value.high, steps.high)};
}

inline F32x8 splat_like(F32x8, float x) { return broadcast(x); }
inline F32x8x2 splat_like(F32x8x2, float x) { return {broadcast(x), broadcast(x)}; }

// The steps of exp_fixed, eight at a time.
inline F32x8 exp_fixed(F32x8 x) {
  namespace s = exp_steps;
  return zero_where_below(x, s::kLowest, exp_within(clamp_above(x, s::kHighest), 0));
}

// The end of an 8-lane reduction of products: the last `count` < 8 terms go to their lanes, then
// all fold.
inline float fold_with_tail(F32x8 lanes, const float* a, const float* b, std::size_t count) {
  if (count == 0) return fold_sum(lanes);
  float tail[kLanes];
  store(tail, lanes);
  for (std::size_t i = 0; i < count; ++i) tail[i] = std::fma(a[i], b[i], tail[i]);
  return fold_sum(load(tail));
}

}  // namespace pagoda::kernels::fp32

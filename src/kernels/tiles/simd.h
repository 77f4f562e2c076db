// Sixteen floats at once, on AVX-512 or in plain C++. Each operation is the IEEE one lane by lane,
// so both give the same bits.
//
// Everything here lives in the namespace of the set that is being compiled (PAGODA_TILE_SET): the
// same source is built for several instruction sets, and no two builds may share a function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exp.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#else
#include <cmath>
#include <cstring>

#include "base/half.h"
#endif

// Before a loop over registers. Emulated ones are arrays: there is nothing to gain.
#if defined(__AVX512F__)
#define PAGODA_TILE_UNROLL _Pragma("GCC unroll 16")
#else
#define PAGODA_TILE_UNROLL
#endif

namespace pagoda::kernels::PAGODA_TILE_SET {

inline constexpr std::size_t kLanes = 16;

#if defined(__AVX512F__)

struct F32x16 {
  __m512 v;
};

inline F32x16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
inline F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
inline F32x16 operator+(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F32x16 operator-(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F32x16 operator*(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F32x16 operator/(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }

// Like the instruction: b where either is NaN.
inline F32x16 min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }

// p[0], p[2], … and p[1], p[3], … of 32 floats
inline void load_pairs(const float* p, F32x16& first, F32x16& second) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  const __m512 low = _mm512_loadu_ps(p);
  const __m512 high = _mm512_loadu_ps(p + kLanes);
  first.v = _mm512_permutex2var_ps(low, even, high);
  second.v = _mm512_permutex2var_ps(low, odd, high);
}
inline void store_pairs(float* p, F32x16 first, F32x16 second) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  _mm512_storeu_ps(p, _mm512_permutex2var_ps(first.v, low, second.v));
  _mm512_storeu_ps(p + kLanes, _mm512_permutex2var_ps(first.v, high, second.v));
}

// 0 in lanes where x < limit, else value
inline F32x16 zero_where_below(F32x16 x, float limit, F32x16 value) {
  const __mmask16 stays = _mm512_cmp_ps_mask(x.v, broadcast(limit).v, _CMP_NLT_UQ);
  return {_mm512_maskz_mov_ps(stays, value.v)};
}
// Adds the low bits of `steps` to the exponent of `value`.
inline F32x16 scale_by_power(F32x16 value, F32x16 steps) {
  const __m512i power = _mm512_slli_epi32(_mm512_castps_si512(steps.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(value.v), power))};
}
// The same, 0 in lanes where x < limit.
inline F32x16 scale_by_power_above(F32x16 x, float limit, F32x16 value, F32x16 steps) {
  const __mmask16 stays = _mm512_cmp_ps_mask(x.v, broadcast(limit).v, _CMP_NLT_UQ);
  const __m512i power = _mm512_slli_epi32(_mm512_castps_si512(steps.v), 23);
  return {_mm512_castsi512_ps(_mm512_maskz_add_epi32(stays, _mm512_castps_si512(value.v), power))};
}
// Lane i: bit i of `lanes` ? a : otherwise
inline F32x16 select(std::uint32_t lanes, F32x16 a, F32x16 otherwise) {
  return {_mm512_mask_mov_ps(otherwise.v, static_cast<__mmask16>(lanes), a.v)};
}

inline float fold_max(F32x16 a) { return _mm512_reduce_max_ps(a.v); }
// l[i] += l[i + 8], l[i + 4], l[i + 2], l[i + 1] in turn
inline float fold_sum(F32x16 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// Two vectors rounded to bf16, `low` in the first 16 halves. Subnormals become zero.
inline __m512i to_bf16(F32x16 low, F32x16 high) {
#if defined(__AVX512BF16__)
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v));
#else
  const auto halves = [](__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    const __mmask16 small =
        _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7F800000));  // zero or subnormal
    rounded = _mm512_mask_and_epi32(rounded, small, bits, _mm512_set1_epi32(INT32_MIN));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
  };
  return _mm512_inserti64x4(_mm512_castsi256_si512(halves(low.v)), halves(high.v), 1);
#endif
}
inline void store_bf16(std::uint16_t* p, F32x16 low, F32x16 high) {
  _mm512_storeu_si512(p, to_bf16(low, high));
}
inline void store_bf16(std::uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(to_bf16(a, a)));
}

// As bf16 to every other half: p[0], p[2], …. What stands between stays untouched.
inline void store_bf16_apart(std::uint16_t* p, F32x16 a) {
  const __m512i words = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(to_bf16(a, a)));
  _mm512_mask_storeu_epi16(p, 0x55555555, words);
}

// For as long as it lives, the thread's floating point counts subnormals as zero.
class FlushSubnormals {
 public:
  FlushSubnormals() : outer_(_mm_getcsr()) { _mm_setcsr(outer_ | 0x8040); }  // FTZ and DAZ
  ~FlushSubnormals() { _mm_setcsr(outer_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  std::uint32_t outer_;
};
inline F32x16 without_subnormals(F32x16 x) { return x; }  // FlushSubnormals sees to it

inline F32x16 load_fp16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}

#else

struct F32x16 {
  float v[kLanes];
};

template <class Make>
[[gnu::always_inline]] inline F32x16 each_lane(Make make) {
  F32x16 result;
  for (std::size_t i = 0; i < kLanes; ++i) result.v[i] = make(i);
  return result;
}

inline F32x16 broadcast(float x) {
  return each_lane([&](std::size_t) { return x; });
}
inline F32x16 load(const float* p) {
  F32x16 a;
  std::memcpy(a.v, p, sizeof(a.v));
  return a;
}
inline void store(float* p, const F32x16& a) { std::memcpy(p, a.v, sizeof(a.v)); }
inline F32x16 operator+(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] + b.v[i]; });
}
inline F32x16 operator-(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] - b.v[i]; });
}
inline F32x16 operator*(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] * b.v[i]; });
}
inline F32x16 operator/(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] / b.v[i]; });
}
inline F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  return each_lane([&](std::size_t i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
}
// Like the instruction: b where either is NaN.
inline F32x16 max(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}

inline F32x16 min(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}

inline void load_pairs(const float* p, F32x16& first, F32x16& second) {
  first = each_lane([&](std::size_t i) { return p[2 * i]; });
  second = each_lane([&](std::size_t i) { return p[2 * i + 1]; });
}
inline void store_pairs(float* p, const F32x16& first, const F32x16& second) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    p[2 * i] = first.v[i];
    p[2 * i + 1] = second.v[i];
  }
}

inline F32x16 zero_where_below(const F32x16& x, float limit, const F32x16& value) {
  return each_lane([&](std::size_t i) { return x.v[i] < limit ? 0.0f : value.v[i]; });
}
inline F32x16 scale_by_power(const F32x16& value, const F32x16& steps) {
  return each_lane([&](std::size_t i) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value.v[i]) +
                                (std::bit_cast<std::uint32_t>(steps.v[i]) << 23));
  });
}
inline F32x16 scale_by_power_above(const F32x16& x, float limit, const F32x16& value,
                                   const F32x16& steps) {
  return zero_where_below(x, limit, scale_by_power(value, steps));
}
inline F32x16 select(std::uint32_t lanes, const F32x16& a, const F32x16& otherwise) {
  return each_lane([&](std::size_t i) { return (lanes >> i & 1) != 0 ? a.v[i] : otherwise.v[i]; });
}

inline float fold_max(const F32x16& a) {
  float highest = a.v[0];
  for (const float value : a.v) highest = value > highest ? value : highest;
  return highest;
}
inline float fold_sum(F32x16 a) {
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) a.v[i] += a.v[i + width];
  }
  return a.v[0];
}

// Zero for subnormals, the sign kept.
inline float without_subnormals(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}
// Plain C++ cannot ask for it: where it matters, without_subnormals() is called.
class [[maybe_unused]] FlushSubnormals {};
inline F32x16 without_subnormals(const F32x16& x) {
  return each_lane([&](std::size_t i) { return without_subnormals(x.v[i]); });
}

inline void store_bf16(std::uint16_t* p, const F32x16& a) {
  for (std::size_t i = 0; i < kLanes; ++i) p[i] = bf16_from_float(without_subnormals(a.v[i]));
}
inline void store_bf16(std::uint16_t* p, const F32x16& low, const F32x16& high) {
  store_bf16(p, low);
  store_bf16(p + kLanes, high);
}

inline void store_bf16_apart(std::uint16_t* p, const F32x16& a) {
  for (std::size_t i = 0; i < kLanes; ++i) p[2 * i] = bf16_from_float(without_subnormals(a.v[i]));
}

inline F32x16 load_fp16(const std::uint16_t* p) {
  return each_lane([&](std::size_t i) { return float_from_fp16(p[i]); });
}

#endif

// Asks memory for lines that will be read soon. By assembly: GCC takes a function that does nothing
// else for one that does nothing.
inline void fetch_lines(const std::byte* first, std::size_t lines, std::size_t stride) {
#if defined(__AVX512F__)
  for (std::size_t i = 0; i < lines; ++i) asm volatile("prefetcht0 (%0)" ::"r"(first + i * stride));
#else
  static_cast<void>(first), static_cast<void>(lines), static_cast<void>(stride);
#endif
}

inline F32x16 splat_like(const F32x16&, float x) { return broadcast(x); }

// The steps of exp_fixed, sixteen at a time, for x up to kHighest or NaN.
inline F32x16 exp_up_to_highest(const F32x16& x) {
  return zero_where_below(x, exp_steps::kLowest, exp_within(x, 0));
}

// The steps of power_fixed.
[[gnu::always_inline]] inline F32x16 power_of_two(const F32x16& t) {
  namespace s = exp_steps;
  const F32x16 rounder = broadcast(s::kRounder);
  const F32x16 shifted = t + rounder;
  const F32x16 r = t - (shifted - rounder);
  F32x16 p = fma(broadcast(s::kQ4), r, broadcast(s::kQ3));
  p = fma(p, r, broadcast(s::kQ2));
  p = fma(p, r, broadcast(s::kQ1));
  p = fma(p, r, broadcast(1.0f));
  return scale_by_power_above(t, s::kLowestPower, p, shifted);
}

// The steps of exp_fixed for every x.
inline F32x16 exp_anywhere(const F32x16& x) {
  return exp_up_to_highest(min(broadcast(exp_steps::kHighest), x));
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET

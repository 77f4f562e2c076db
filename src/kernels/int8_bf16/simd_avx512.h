// kernels/int8_bf16/simd.h by AVX-512.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/int8_bf16/flush_x86.h"

// Before a loop over registers.
#define PAGODA_ISA_UNROLL _Pragma("GCC unroll 16")

namespace pagoda::kernels::PAGODA_ISA {

// Rows of x, each with two sums, whose sums and factors fit into the registers together.
inline constexpr int kRowsInRegisters = 8;

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

// Stores lanes as bf16 to every other half: p[0], p[2], …. The halves between stay untouched.
inline void store_bf16_apart(std::uint16_t* p, F32x16 a) {
  const __m512i words = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(to_bf16(a, a)));
  _mm512_mask_storeu_epi16(p, 0x55555555, words);
}

// FlushSubnormals sees to it.
inline float without_subnormals(float x) { return x; }
inline F32x16 without_subnormals(F32x16 x) { return x; }

inline F32x16 load_fp16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}

inline F32x16 load_ints(const std::int32_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_loadu_si512(p))};
}
// The nearest integers, ties to even, of numbers within 16 bits. NaN gives something.
inline void store_nearest(std::int16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a.v)));
}

// Lane i: halves 2 i and 2 i + 1.
inline void load_bf16_pairs(const std::byte* p, F32x16& first, F32x16& second) {
  const __m512i both = _mm512_loadu_si512(p);
  first.v = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
  second.v = _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(-65536)));
}

// Prefetches a cache line. It is written in assembly, since GCC removes a function whose only
// effect is a prefetch builtin.
inline void fetch_line(const std::byte* p) { asm volatile("prefetcht0 (%0)" ::"r"(p)); }

}  // namespace pagoda::kernels::PAGODA_ISA

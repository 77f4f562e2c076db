// kernels/int8_bf16/simd.h by AVX2 with FMA and F16C: sixteen floats are two registers.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/int8_bf16/flush_x86.h"

// Before a loop over registers.
#define PAGODA_ISA_UNROLL _Pragma("GCC unroll 16")

namespace pagoda::kernels::PAGODA_ISA {

// Rows of x, each with two sums, whose sums and factors fit into the registers together.
inline constexpr int kRowsInRegisters = 3;

struct F32x16 {
  __m256 low;   // lanes 0 to 7
  __m256 high;  // lanes 8 to 15
};

inline F32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.low);
  _mm256_storeu_ps(p + 8, a.high);
}
inline F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
// Like the instruction: b where either is NaN.
inline F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline F32x16 min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

// p[0], p[2], … and p[1], p[3], … of 32 floats
inline void load_pairs(const float* p, F32x16& first, F32x16& second) {
  const auto halves = [](const float* from, __m256& even, __m256& odd) {
    const __m256 low = _mm256_loadu_ps(from);
    const __m256 high = _mm256_loadu_ps(from + 8);
    // Shuffling keeps to lanes of 128 bits: pairs come out as 0, 2, 1, 3.
    const auto in_order = [](__m256 pairs) {
      return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xD8));
    };
    even = in_order(_mm256_shuffle_ps(low, high, 0x88));
    odd = in_order(_mm256_shuffle_ps(low, high, 0xDD));
  };
  halves(p, first.low, second.low);
  halves(p + kLanes, first.high, second.high);
}
inline void store_pairs(float* p, F32x16 first, F32x16 second) {
  const auto halves = [](float* to, __m256 even, __m256 odd) {
    const __m256 low = _mm256_unpacklo_ps(even, odd);
    const __m256 high = _mm256_unpackhi_ps(even, odd);
    _mm256_storeu_ps(to, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(to + 8, _mm256_permute2f128_ps(low, high, 0x31));
  };
  halves(p, first.low, second.low);
  halves(p + kLanes, first.high, second.high);
}

// 0 in lanes where x < limit, else value
inline F32x16 zero_where_below(F32x16 x, float limit, F32x16 value) {
  const __m256 limits = _mm256_set1_ps(limit);
  return {_mm256_andnot_ps(_mm256_cmp_ps(x.low, limits, _CMP_LT_OQ), value.low),
          _mm256_andnot_ps(_mm256_cmp_ps(x.high, limits, _CMP_LT_OQ), value.high)};
}
// Adds the low bits of `steps` to the exponent of `value`.
inline F32x16 scale_by_power(F32x16 value, F32x16 steps) {
  const auto scaled = [](__m256 v, __m256 s) {
    const __m256i power = _mm256_slli_epi32(_mm256_castps_si256(s), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), power));
  };
  return {scaled(value.low, steps.low), scaled(value.high, steps.high)};
}
// The same, 0 in lanes where x < limit.
inline F32x16 scale_by_power_above(F32x16 x, float limit, F32x16 value, F32x16 steps) {
  return zero_where_below(x, limit, scale_by_power(value, steps));
}
// Lane i: bit i of `lanes` ? a : otherwise
inline F32x16 select(std::uint32_t lanes, F32x16 a, F32x16 otherwise) {
  const auto chosen = [](std::uint32_t bits, __m256 yes, __m256 no) {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), each);
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, each)));
  };
  return {chosen(lanes, a.low, otherwise.low), chosen(lanes >> 8, a.high, otherwise.high)};
}

inline float fold_max(F32x16 a) {
  const __m256 eight = _mm256_max_ps(a.low, a.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
// l[i] += l[i + 8], l[i + 4], l[i + 2], l[i + 1] in turn
inline float fold_sum(F32x16 a) {
  const __m256 eight = _mm256_add_ps(a.low, a.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// Rounded to bf16. Subnormals become zero.
inline __m256i to_bf16(F32x16 a) {
  const auto halves = [](__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i sign = _mm256_and_si256(bits, _mm256_set1_epi32(INT32_MIN));
    const __m256i small = _mm256_cmpeq_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7F800000)),
                                             _mm256_setzero_si256());
    const __m256i result = _mm256_blendv_epi8(_mm256_blendv_epi8(rounded, quiet, nan), sign, small);
    return _mm256_srli_epi32(result, 16);
  };
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(halves(a.low), halves(a.high)), 0xD8);
}
inline void store_bf16(std::uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(a));
}
inline void store_bf16(std::uint16_t* p, F32x16 low, F32x16 high) {
  store_bf16(p, low);
  store_bf16(p + kLanes, high);
}

// Stores lanes as bf16 to every other half: p[0], p[2], …. The halves between are not even read:
// another thread may be writing them.
inline void store_bf16_apart(std::uint16_t* p, F32x16 a) {
  alignas(32) std::uint16_t halves[kLanes];
  store_bf16(halves, a);
  PAGODA_ISA_UNROLL for (std::size_t i = 0; i < kLanes; ++i) p[2 * i] = halves[i];
}

// FlushSubnormals sees to it.
inline float without_subnormals(float x) { return x; }
inline F32x16 without_subnormals(F32x16 x) { return x; }

inline F32x16 load_fp16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}

inline F32x16 load_ints(const std::int32_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
          _mm256_cvtepi32_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8)))};
}
// The nearest integers, ties to even, of numbers within 16 bits. NaN gives something.
inline void store_nearest(std::int16_t* p, F32x16 a) {
  const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(words, 0xD8));
}

// Lane i: halves 2 i and 2 i + 1.
inline void load_bf16_pairs(const std::byte* p, F32x16& first, F32x16& second) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  const __m256i above = _mm256_set1_epi32(-65536);
  first = {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
           _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
  second = {_mm256_castsi256_ps(_mm256_and_si256(low, above)),
            _mm256_castsi256_ps(_mm256_and_si256(high, above))};
}

// Prefetches a cache line. It is written in assembly, since GCC removes a function whose only
// effect is a prefetch builtin.
inline void fetch_line(const std::byte* p) { asm volatile("prefetcht0 (%0)" ::"r"(p)); }

}  // namespace pagoda::kernels::PAGODA_ISA

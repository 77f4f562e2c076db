// Eight unsigned integers at once, and a sum of them that cannot overflow: F32x8's companion.
#pragma once

#include "kernels/fp32/f32x8.h"

namespace pagoda::kernels::fp32 {

#if defined(__AVX2__)

struct U32x8 {
  __m256i v;
};

inline U32x8 load(const std::uint32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
inline void store(std::uint32_t* p, U32x8 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v);
}
// 0 <= x < 2^31, ties to even
inline U32x8 to_nearest(F32x8 x) { return {_mm256_cvtps_epi32(x.v)}; }
// 0 in lanes where x < limit, else value
inline U32x8 zero_where_below(F32x8 x, float limit, U32x8 value) {
  return {_mm256_castps_si256(zero_where_below(x, limit, F32x8{_mm256_castsi256_ps(value.v)}).v)};
}

class MassLanes {
 public:
  void add(U32x8 a) {
    const __m256i even = _mm256_and_si256(a.v, _mm256_set1_epi64x(0xFFFFFFFF));
    const __m256i odd = _mm256_srli_epi64(a.v, 32);
    sums_ = _mm256_add_epi64(sums_, _mm256_add_epi64(even, odd));
  }
  std::uint64_t fold() const {
    std::uint64_t lanes[4];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), sums_);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
  }

 private:
  __m256i sums_ = _mm256_setzero_si256();
};

#else  // NEON

struct U32x8 {
  uint32x4_t low;
  uint32x4_t high;
};

inline U32x8 load(const std::uint32_t* p) { return {vld1q_u32(p), vld1q_u32(p + 4)}; }
inline void store(std::uint32_t* p, U32x8 a) {
  vst1q_u32(p, a.low);
  vst1q_u32(p + 4, a.high);
}
// 0 <= x < 2^31, ties to even
inline U32x8 to_nearest(F32x8 x) { return {vcvtnq_u32_f32(x.low), vcvtnq_u32_f32(x.high)}; }
// 0 in lanes where x < limit, else value
inline U32x8 zero_where_below(F32x8 x, float limit, U32x8 value) {
  const float32x4_t bound = vdupq_n_f32(limit);
  return {vbicq_u32(value.low, vcltq_f32(x.low, bound)),
          vbicq_u32(value.high, vcltq_f32(x.high, bound))};
}

class MassLanes {
 public:
  void add(U32x8 a) {
    low_ = vpadalq_u32(low_, a.low);
    high_ = vpadalq_u32(high_, a.high);
  }
  std::uint64_t fold() const { return vaddvq_u64(vaddq_u64(low_, high_)); }

 private:
  uint64x2_t low_ = vdupq_n_u64(0);
  uint64x2_t high_ = vdupq_n_u64(0);
};

#endif

}  // namespace pagoda::kernels::fp32

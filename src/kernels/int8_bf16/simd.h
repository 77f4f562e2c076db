// Sixteen floats at once, by what the CPU has for them or in plain C++. Each operation is the IEEE
// one lane by lane, so all give the same bits.
//
// Everything here lives in the namespace of the set that is being compiled (PAGODA_ISA): the
// same source is built for several instruction sets, and no two builds may share a function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exp.h"

namespace pagoda::kernels::PAGODA_ISA {
inline constexpr std::size_t kLanes = 16;
}

#if defined(__AVX512F__)
#include "kernels/int8_bf16/simd_avx512.h"
#elif defined(__AVX2__)
#include "kernels/int8_bf16/simd_avx2.h"
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#include "kernels/int8_bf16/simd_neon.h"
#else
#include "kernels/int8_bf16/simd_plain.h"
#endif

namespace pagoda::kernels::PAGODA_ISA {

// The same place, which the compiler must take for another: what stands there is to be read again
// where it is used, not kept in registers that sums need.
template <class T>
[[gnu::always_inline]] inline const T* read_again(const T* place) {
  asm("" : "+r"(place));
  return place;
}

// Asks memory for lines that will be read soon.
inline void fetch_lines(const std::byte* first, std::size_t lines, std::size_t stride) {
  for (std::size_t i = 0; i < lines; ++i) fetch_line(first + i * stride);
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

}  // namespace pagoda::kernels::PAGODA_ISA

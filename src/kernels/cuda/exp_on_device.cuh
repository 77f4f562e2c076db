// exp_fixed() of kernels/exp.h on the device, operation by operation.
#pragma once

#include <cuda_runtime.h>

#include "kernels/exp.h"

namespace pagoda::kernels::cuda {

// For exp_steps::kLowest <= x <= exp_steps::kHighest.
__device__ __forceinline__ float exp_within_on_device(float x) {
  namespace s = exp_steps;
  const float shifted = __fmaf_rn(x, s::kLog2E, s::kRounder);
  const float n = shifted - s::kRounder;
  float r = __fmaf_rn(n, -s::kLn2High, x);
  r = __fmaf_rn(n, -s::kLn2Low, r);
  float p = __fmaf_rn(s::kP0, r, s::kP1);
  p = __fmaf_rn(p, r, s::kP2);
  p = __fmaf_rn(p, r, s::kP3);
  p = __fmaf_rn(p, r, s::kP4);
  p = __fmaf_rn(p, r, s::kP5);
  const float e = __fmaf_rn(p, r * r, r) + 1.0f;
  return __uint_as_float(__float_as_uint(e) + (__float_as_uint(shifted) << 23));
}

__device__ __forceinline__ float exp_on_device(float x) {
  namespace s = exp_steps;
  if (x < s::kLowest) return 0.0f;
  if (x != x) return x;  // the chip's NaN has other bits than the host's, which the steps turn
  return exp_within_on_device(x > s::kHighest ? s::kHighest : x);
}

}  // namespace pagoda::kernels::cuda

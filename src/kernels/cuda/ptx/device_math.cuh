// The functions that gates.h needs, as the chip has them.
#pragma once

#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

struct DeviceMath {
  static __device__ __forceinline__ float exp2(float x) { return ex2_approx(x); }
  static __device__ __forceinline__ float fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
  }
};

}  // namespace pagoda::kernels::cuda

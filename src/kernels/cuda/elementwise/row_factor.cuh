// The factor of an RMS norm over a row, with the sums that ops.h states for rms_norm.
#pragma once

#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

inline constexpr std::uint32_t kNormThreads = 256;

// The sum of the values of all threads of a block, in the order that ops.h states. Called once in a
// kernel.
__device__ __forceinline__ float block_sum(float value) {
  __shared__ float warps[kNormThreads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = warps[0];
  for (std::uint32_t w = 1; w < kNormThreads / 32; ++w) sum += warps[w];
  return sum;
}

// 1 / root mean square, of the squares that each thread has added up.
__device__ __forceinline__ float row_factor(float squares, std::uint32_t width, float epsilon) {
  const float mean = __fdiv_rn(block_sum(squares), static_cast<float>(width));
  return __fdiv_rn(1.0f, __fsqrt_rn(mean + epsilon));
}

__device__ __forceinline__ float squares_of(const float* x, std::uint32_t width) {
  float squares = 0;
  for (std::uint32_t i = threadIdx.x; i < width; i += kNormThreads) {
    squares = __fmaf_rn(x[i], x[i], squares);
  }
  return squares;
}

}  // namespace pagoda::kernels::cuda

// What becomes of a 16 x 8 fragment of a product: rows of weights by rows of the batch.
#pragma once

#include "kernels/cuda/ops.h"
#include "kernels/cuda/tensor_core.cuh"

namespace pagoda::kernels::cuda {

__device__ __forceinline__ float gated(float gate, float up) {
  constexpr float kLog2E = 1.44269504088896341f;
  const float grown = 1.0f + exp2_fast(-gate * kLog2E);
  return __fdiv_rn(gate, grown) * up;
}

// The fragment of row tile `tile` and batch rows 8 * batch_tile to 8 * batch_tile + 7.
__device__ __forceinline__ void finish_fragment(const Product& job, std::uint32_t tile,
                                                std::uint32_t batch_tile, const float (&c)[4]) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t low = lane / 4;
#pragma unroll
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t row = batch_tile * 8 + lane % 4 * 2 + i;
    if (row >= job.rows) continue;
    if (job.finish == Finish::kGate) {
      const std::uint32_t column = tile * 8 + low;
      if (2 * column >= job.weight.rows) continue;
      const std::uint32_t padded = operand_columns(job.weight.rows / 2);
      job.operand[operand_place(row, column, padded)] = bf16_bits(gated(c[i], c[i + 2]));
      continue;
    }
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t n = tile * kTileRows + low + 8 * half;
      if (n >= job.weight.rows) continue;
      float y = c[i + 2 * half];
      if (job.bias != nullptr) y += job.bias[n];
      float& out = job.out[row * job.out_stride + n];
      out = job.finish == Finish::kAdd ? out + y : y;
    }
  }
}

}  // namespace pagoda::kernels::cuda

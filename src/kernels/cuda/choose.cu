#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/tensor_core.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 1024;

// Larger is better: the logit's order, then the lower id. Not a number beats everything.
__device__ std::uint64_t rank_of(float logit, std::uint32_t id) {
  const std::uint32_t bits = __float_as_uint(logit == 0.0f ? 0.0f : logit);
  const bool finite = (bits & 0x7F800000u) != 0x7F800000u;
  const std::uint32_t order = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return finite ? std::uint64_t{order} << 32 | (0xFFFFFFFFu - id) : ~std::uint64_t{0};
}

__device__ std::uint64_t best_of_warp(std::uint64_t best) {
  for (int step = 16; step > 0; step /= 2) {
    const std::uint64_t other = __shfl_xor_sync(~0u, best, step);
    best = other > best ? other : best;
  }
  return best;
}

__global__ void __launch_bounds__(kThreads) choose(Choose job) {
  let_next_launch_begin();
  wait_for_launch_before();
  __shared__ std::uint64_t warps[kThreads / 32];
  const float* const logits = job.logits + std::size_t{blockIdx.x} * job.vocabulary;
  std::uint64_t best = 0;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < job.vocabulary; i += kThreads) {
    const std::uint64_t rank = rank_of(logits[i], i);
    best = rank > best ? rank : best;
  }
  best = best_of_warp(best);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  best = best_of_warp(warps[threadIdx.x]);
  if (threadIdx.x != 0) return;
  job.choices[blockIdx.x] =
      best == ~std::uint64_t{0} ? kNoChoice : 0xFFFFFFFFu - static_cast<std::uint32_t>(best);
}

}  // namespace

void launch_choose(const Choose& job, Stream stream) {
  launch_kernel(choose, dim3(job.rows), kThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

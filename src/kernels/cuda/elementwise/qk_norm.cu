#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kWarps = 4;

// A warp normalises one head; the heads of queries come before those of keys, values last.
__global__ void __launch_bounds__(kWarps * 32) qk_norm(QkNorm job) {
  pdl_trigger();
  pdl_wait();
  const std::uint32_t head = blockIdx.y * kWarps + threadIdx.x / 32;
  const bool is_value = head >= job.heads + job.kv_heads;
  if (head >= job.heads + 2 * job.kv_heads || (is_value && !job.normalises_values)) return;
  const std::uint32_t lane = threadIdx.x % 32;
  const std::size_t columns = std::size_t{job.heads + 2 * job.kv_heads} * job.head_dim;
  float* const x = job.qkv + blockIdx.x * columns + std::size_t{head} * job.head_dim;
  const float* const weight = head < job.heads ? job.query_weight : job.key_weight;
  if (!is_value && weight == nullptr) return;
  float squares = 0;
  for (std::uint32_t d = lane; d < job.head_dim; d += 32) {
    squares = __fmaf_rn(x[d], x[d], squares);
  }
  for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(~0u, squares, step);
  const float mean = __fdiv_rn(squares, static_cast<float>(job.head_dim));
  const float factor = __fdiv_rn(1.0f, __fsqrt_rn(mean + job.epsilon));
  for (std::uint32_t d = lane; d < job.head_dim; d += 32) {
    x[d] = x[d] * factor * (is_value ? 1.0f : weight[d]);
  }
}

}  // namespace

void launch_qk_norm(const QkNorm& job, StreamHandle stream) {
  const std::uint32_t heads = job.heads + (job.normalises_values ? 2 : 1) * job.kv_heads;
  launch_kernel(qk_norm, dim3(job.rows, (heads + kWarps - 1) / kWarps), kWarps * 32, 0, stream,
                job);
}

}  // namespace pagoda::kernels::cuda

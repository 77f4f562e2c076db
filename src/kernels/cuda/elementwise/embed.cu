#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 128;

__global__ void embed(Embed job) {
  pdl_trigger();
  pdl_wait();
  const BatchToken batch_token = job.batch_tokens[blockIdx.x];
  std::uint32_t token = batch_token.token;
  if (batch_token.sampled_index != kNotSampled)
    token = job.sampled_tokens[batch_token.sampled_index];
  // A row without a position, or one whose token could not be sampled: its request ends, and
  // nothing reads the row.
  if (batch_token.position == kNoPosition || token == kNotSampled) token = 0;
  const Bf16* const from = job.table + std::size_t{token} * job.width;
  float* const to = job.residual + std::size_t{blockIdx.x} * job.width;
  for (std::uint32_t i = threadIdx.x; i < job.width; i += kThreads) {
    to[i] = __uint_as_float(std::uint32_t{from[i]} << 16) * job.scale;
  }
}

}  // namespace

void launch_embed(const Embed& job, StreamHandle stream) {
  launch_kernel(embed, dim3(job.rows), kThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

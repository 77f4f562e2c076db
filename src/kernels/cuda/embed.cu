#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/tensor_core.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 128;

__global__ void embed(Embed job) {
  let_next_launch_begin();
  wait_for_launch_before();
  const RowPlace place = job.places[blockIdx.x];
  std::uint32_t token = place.token;
  if (place.chosen != kNoChoice) token = job.choices[place.chosen];
  // A row of nobody, or after a choice that failed: its request ends, nothing reads it.
  if (place.position == kNoPosition || token == kNoChoice) token = 0;
  const Bf16* const from = job.table + std::size_t{token} * job.width;
  float* const to = job.residual + std::size_t{blockIdx.x} * job.width;
  for (std::uint32_t i = threadIdx.x; i < job.width; i += kThreads) {
    to[i] = __uint_as_float(std::uint32_t{from[i]} << 16);
  }
}

}  // namespace

void launch_embed(const Embed& job, Stream stream) {
  launch_kernel(embed, dim3(job.rows), kThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

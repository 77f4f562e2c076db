#include "kernels/cuda/elementwise/row_factor.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kNormThreads) add_branch(AddBranch job) {
  pdl_trigger();
  pdl_wait();
  const float* const x = job.branch + std::size_t{blockIdx.x} * job.width;
  float* const to = job.residual + std::size_t{blockIdx.x} * job.width;
  const bool normed = job.weight != nullptr;
  const float factor = normed ? row_factor(squares_of(x, job.width), job.width, job.epsilon) : 1.0f;
  for (std::uint32_t i = threadIdx.x; i < job.width; i += kNormThreads) {
    const float added = normed ? x[i] * factor * job.weight[i] : x[i];
    to[i] = (to[i] + added * job.scale) * job.output_scale;
  }
}

}  // namespace

void launch_add_branch(const AddBranch& job, StreamHandle stream) {
  launch_kernel(add_branch, dim3(job.rows), kNormThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

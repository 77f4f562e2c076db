#include "kernels/cuda/elementwise/row_factor.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kNormThreads) row_norm(RowNorm job) {
  pdl_trigger();
  pdl_wait();
  float* const x = job.values + blockIdx.x * job.stride;
  const float factor = row_factor(squares_of(x, job.width), job.width, job.epsilon);
  for (std::uint32_t i = threadIdx.x; i < job.width; i += kNormThreads) {
    x[i] = x[i] * factor * job.weight[i];
  }
}

}  // namespace

void launch_row_norm(const RowNorm& job, StreamHandle stream) {
  launch_kernel(row_norm, dim3(job.rows), kNormThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

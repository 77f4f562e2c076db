#include "kernels/cuda/gates.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/device_math.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kValuesEach = 4;

__global__ void __launch_bounds__(kThreads) finish_logits(FinishLogits job, float slope) {
  pdl_trigger();
  pdl_wait();
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kThreads * kValuesEach + threadIdx.x;
#pragma unroll
  for (std::uint32_t i = 0; i < kValuesEach; ++i) {
    const std::uint64_t at = first + i * kThreads;
    if (at >= job.count) return;
    const float logit = job.logits[at] * job.scale;
    job.logits[at] = job.cap > 0 ? soft_cap_of<DeviceMath>(logit, slope, job.cap) : logit;
  }
}

}  // namespace

void launch_finish_logits(const FinishLogits& job, StreamHandle stream) {
  const std::uint64_t each = std::uint64_t{kThreads} * kValuesEach;
  const auto blocks = static_cast<std::uint32_t>((job.count + each - 1) / each);
  const float slope = job.cap > 0 ? soft_cap_slope(1.0f, job.cap) : 0.0f;
  launch_kernel(finish_logits, dim3(blocks), kThreads, 0, stream, job, slope);
}

}  // namespace pagoda::kernels::cuda

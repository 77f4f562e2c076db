#include "kernels/cuda/exp_on_device.cuh"
#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;

__global__ void __launch_bounds__(kThreads) mix_experts(MixExperts job) {
  __shared__ float weights[kChosenMax];
  __shared__ const float* results[kChosenMax];  // nullptr: no expert
  pdl_trigger();
  pdl_wait();
  const std::size_t row = blockIdx.x;
  if (threadIdx.x < job.chosen_each) {
    const std::size_t pair = row * job.chosen_each + threadIdx.x;
    const ChosenExpert chosen = job.chosen[pair];
    weights[threadIdx.x] = chosen.weight;
    results[threadIdx.x] = chosen.expert == kNoExpert
                               ? nullptr
                               : job.results + std::size_t{job.slot_of_pair[pair]} * job.width;
  }
  __syncthreads();
  const float gate = job.shared_gates == nullptr
                         ? 1.0f
                         : __fdiv_rn(1.0f, 1.0f + exp_on_device(-job.shared_gates[row]));
  for (std::uint32_t i = threadIdx.x; i < job.width; i += kThreads) {
    float sum = 0;
    for (std::uint32_t n = 0; n < job.chosen_each; ++n) {
      if (results[n] != nullptr) sum += weights[n] * results[n][i];
    }
    if (job.shared != nullptr) sum += gate * job.shared[row * job.width + i];
    float& out = job.out[row * job.width + i];
    out = job.adds ? out + sum * job.scale : sum;
  }
}

}  // namespace

void launch_mix_experts(const MixExperts& job, StreamHandle stream) {
  launch_kernel(mix_experts, dim3(job.rows), kThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

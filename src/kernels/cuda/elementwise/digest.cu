#include "kernels/cuda/digest.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    add_digest(const std::byte* data, std::uint64_t bytes, std::uint64_t* sum) {
  pdl_wait();
  const std::uint64_t words = bytes / 8;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  unsigned long long own = 0;
  for (std::uint64_t i = first; i < words; i += std::uint64_t{gridDim.x} * kThreads) {
    own += mix_word(reinterpret_cast<const std::uint64_t*>(data)[i], i);
  }
  if (first == 0 && bytes % 8 != 0) {
    std::uint64_t word = 0;
    for (std::uint64_t b = 0; b < bytes % 8; ++b) {
      word |= static_cast<std::uint64_t>(data[words * 8 + b]) << (8 * b);
    }
    own += mix_word(word, words);
  }
  for (int step = 16; step > 0; step /= 2) own += __shfl_xor_sync(~0u, own, step);
  if (threadIdx.x % 32 == 0) atomicAdd(reinterpret_cast<unsigned long long*>(sum), own);
}

}  // namespace

void launch_digest(const std::byte* data, std::uint64_t bytes, std::uint64_t* sum,
                   device::StreamHandle stream) {
  launch_kernel(add_digest, dim3(8 * kSmCount), kThreads, 0, stream, data, bytes, sum);
}

}  // namespace pagoda::kernels::cuda

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;

// SplitMix64 (Steele et al. 2014) of a counter.
__device__ std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + index * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Uniform in [-bound, bound).
__device__ float uniform(std::uint32_t bits, float bound) {
  return (static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f) * bound;
}

__global__ void random_bf16(Bf16* values, std::uint64_t count, float bound, std::uint64_t seed) {
  pdl_wait();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t i = blockIdx.x * kThreads + threadIdx.x; 2 * i < count; i += stride) {
    const std::uint64_t bits = mixed(seed, i);
    values[2 * i] = bf16_bits(uniform(static_cast<std::uint32_t>(bits), bound));
    if (2 * i + 1 < count) {
      values[2 * i + 1] = bf16_bits(uniform(static_cast<std::uint32_t>(bits >> 32), bound));
    }
  }
}

// A block fills chunks: codes, and the scales after them. `widest` is the largest code's distance
// from zero, which stands for `bound`.
__global__ void random_codes(RandomFill job, std::uint32_t code_bytes, float widest, bool minima) {
  pdl_wait();
  const std::uint32_t bytes = chunk_bytes(job.format);
  for (std::uint64_t chunk = blockIdx.x; chunk < job.chunks; chunk += gridDim.x) {
    std::byte* const at = job.data + chunk * bytes;
    for (std::uint32_t i = threadIdx.x; i < code_bytes / 8; i += kThreads) {
      reinterpret_cast<std::uint64_t*>(at)[i] = mixed(job.seed, chunk * 256 + i);
    }
    auto* const halves = reinterpret_cast<__half*>(at + code_bytes);
    const std::uint32_t count = (bytes - code_bytes) / 2;
    for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) {
      const bool minimum = minima && i >= count / 2;
      const float value = minimum ? -job.bound : job.bound / widest;
      if (job.format == WeightFormat::kFp4) {
        reinterpret_cast<Bf16*>(halves)[i] = bf16_bits(value);
      } else {
        halves[i] = __float2half_rn(value);
      }
    }
  }
}

}  // namespace

void launch_random_bf16(Bf16* values, std::uint64_t count, float bound, std::uint64_t seed,
                        StreamHandle stream) {
  launch_kernel(random_bf16, dim3(2048), kThreads, 0, stream, values, count, bound, seed);
}

void launch_random_fill(const RandomFill& job, StreamHandle stream) {
  switch (job.format) {
    case WeightFormat::kBf16:
      return launch_random_bf16(reinterpret_cast<Bf16*>(job.data),
                                job.chunks * (chunk_bytes(WeightFormat::kBf16) / 2), job.bound,
                                job.seed, stream);
    case WeightFormat::kInt4:
      return launch_kernel(random_codes, dim3(2048), kThreads, 0, stream, job, 512u, 8.0f, false);
    case WeightFormat::kFp4:
      return launch_kernel(random_codes, dim3(2048), kThreads, 0, stream, job, 512u, 6.0f, false);
    case WeightFormat::kInt4Min:
      return launch_kernel(random_codes, dim3(2048), kThreads, 0, stream, job, 512u, 7.5f, true);
    case WeightFormat::kInt8:
    case WeightFormat::kInt8Group16:
      return launch_kernel(random_codes, dim3(2048), kThreads, 0, stream, job, 1024u, 128.0f,
                           false);
  }
}

}  // namespace pagoda::kernels::cuda

#include "kernels/cuda/attention/row_codec.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kWarps = 4;
constexpr std::uint32_t kShortLane = 256 / 32;
constexpr std::uint32_t kLongLane = kHeadDimMax / 32;

// A warp takes one head of a row; columns behind its values are zeros, and so are those behind the
// last head's up to the next chunk.
template <std::uint32_t kLaneValues>
__global__ void __launch_bounds__(kWarps * 32) rotate_back(RotateBack job) {
  pdl_trigger();
  const std::uint32_t row = blockIdx.x;
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t head = blockIdx.y * kWarps + threadIdx.x / 32;
  pdl_wait();
  if (head >= job.heads) return;
  const float* const from = job.rotated + (std::size_t{row} * job.heads + head) * job.value_dim;
  float values[kLaneValues] = {};
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    if (lane + 32 * i < job.value_dim) values[i] = from[lane + 32 * i];
  }
  rotate_blocks(values, job.block);
  const std::uint32_t first = head * job.columns;
  const std::uint32_t all = job.heads * job.columns;
  const std::uint32_t end =
      head + 1 < job.heads ? first + job.columns : chunks_of(all) * kChunkColumns;
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    const std::uint32_t d = lane + 32 * i;
    if (d >= job.value_dim) break;
    job.activations[activation_index(row, first + d, job.rows)] = bf16_bits(values[i]);
  }
  for (std::uint32_t column = first + job.value_dim + lane; column < end; column += 32) {
    job.activations[activation_index(row, column, job.rows)] = 0;
  }
}

}  // namespace

void launch_rotate_back(const RotateBack& job, StreamHandle stream) {
  const dim3 grid(job.rows, (job.heads + kWarps - 1) / kWarps);
  const auto kernel =
      job.value_dim <= 32 * kShortLane ? rotate_back<kShortLane> : rotate_back<kLongLane>;
  launch_kernel(kernel, grid, kWarps * 32, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

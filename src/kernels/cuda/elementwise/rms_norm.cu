#include "kernels/cuda/elementwise/row_factor.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = kNormThreads;

// Columns of a row that a thread keeps in registers. They are read once, and their weights before
// pdl_wait().
constexpr std::uint32_t kKept = 16;

__global__ void __launch_bounds__(kThreads) rms_norm(RmsNorm job) {
  pdl_trigger();
  float weight[kKept];
#pragma unroll
  for (std::uint32_t i = 0; i < kKept; ++i) {
    const std::uint32_t column = threadIdx.x + i * kThreads;
    weight[i] = column < job.width && job.weight != nullptr ? job.weight[column] : 1.0f;
  }
  pdl_wait();
  const std::uint32_t row = blockIdx.x;
  const std::uint32_t from = job.source != nullptr ? job.source[row] : row;
  const float* const x = job.residual + std::size_t{from} * job.width;
  float kept[kKept];
#pragma unroll
  for (std::uint32_t i = 0; i < kKept; ++i) {
    const std::uint32_t column = threadIdx.x + i * kThreads;
    kept[i] = column < job.width ? x[column] : 0.0f;
  }
  float squares = 0;
#pragma unroll
  for (const float value : kept) squares = __fmaf_rn(value, value, squares);
  for (std::uint32_t i = kKept * kThreads + threadIdx.x; i < job.width; i += kThreads) {
    squares = __fmaf_rn(x[i], x[i], squares);
  }
  const float of_norm = row_factor(squares, job.width, job.epsilon);
  const float factor = job.weight != nullptr ? of_norm : 1.0f;
  const auto store = [&](std::uint32_t column, float value, float by) {
    job.activations[activation_index(row, column, job.rows)] = bf16_bits(value * factor * by);
  };
#pragma unroll
  for (std::uint32_t i = 0; i < kKept; ++i) {
    const std::uint32_t column = threadIdx.x + i * kThreads;
    if (column < job.width) store(column, kept[i], weight[i]);
  }
  for (std::uint32_t i = kKept * kThreads + threadIdx.x; i < job.width; i += kThreads) {
    store(i, x[i], job.weight != nullptr ? job.weight[i] : 1.0f);
  }
  const std::uint32_t padding = job.width + threadIdx.x;
  if (padding < chunks_of(job.width) * kChunkColumns) {
    job.activations[activation_index(row, padding, job.rows)] = 0;
  }
}

}  // namespace

void launch_rms_norm(const RmsNorm& job, StreamHandle stream) {
  launch_kernel(rms_norm, dim3(job.rows), kThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

#include "kernels/cuda/attention_kernels.cuh"
#include "kernels/cuda/attention_state.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/products.cuh"

namespace pagoda::kernels::cuda {
namespace {

// One block: one query row of one KV head, a thread for each dimension.
__global__ void merge(Attend job) {
  let_next_launch_begin();
  wait_for_launch_before();
  if (blockIdx.x >= *job.item_count) return;
  const AttentionItem item = job.items[blockIdx.x];
  const SequencePlace sequence = job.sequences[item.sequence];
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t kv_head = blockIdx.y;
  const std::uint32_t group = job.heads / layout.kv_heads;
  const std::uint32_t tile_rows = rows_of_tile(item.tile, group, sequence.rows);
  const std::uint32_t place = blockIdx.z;
  if (place >= tile_rows) return;
  const QueryRow row = query_row(item.tile, place, group, sequence.rows);
  const std::uint32_t dim = layout.key_dim;
  const std::size_t stride = std::size_t{layout.kv_heads} * tile_rows * (dim + 2);
  const float* const first =
      job.partials + (std::size_t{item.partial} + kv_head * tile_rows + place) * (dim + 2);
  float top = kNothing;
  float sum = 0;
  float total = 0;
#pragma unroll 8
  for (std::uint32_t i = 0; i < item.last_split - item.first_split; ++i) {
    const float* const partial = first + i * stride;
    const MergeFactors by = merge_factors(top, partial[dim]);
    total = merged(by, total, partial[threadIdx.x]);
    sum = merged(by, sum, partial[dim + 1]);
    top = by.top;
  }
  const std::uint32_t column = (kv_head * group + row.head) * dim + threadIdx.x;
  job.operand[operand_place(sequence.first_row + row.token, column, job.rows)] =
      bf16_bits(__fdiv_rn(total, sum));
}

}  // namespace

void launch_attend(const Attend& job, Stream stream) {
  switch (job.pages.layout.key_dim) {
    case 64:
      return attend_64(job, stream);
    case 128:
      return attend_128(job, stream);
    default:
      return attend_256(job, stream);
  }
}

void launch_attend_wide(const Attend& job, Stream stream) {
  switch (job.pages.layout.key_dim) {
    case 64:
      return attend_wide_64(job, stream);
    case 128:
      return attend_wide_128(job, stream);
    default:
      return attend_wide_256(job, stream);
  }
}

void launch_merge(const Attend& job, Stream stream) {
  launch_kernel(merge, dim3(job.items_max, job.pages.layout.kv_heads, kQueryRows),
                job.pages.layout.key_dim, 0, stream, job);
}

cudaError_t prepare_attend() {
  for (const cudaError_t code : {prepare_attend_64(), prepare_attend_128(), prepare_attend_256(),
                                 prepare_wide_64(), prepare_wide_128(), prepare_wide_256()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda

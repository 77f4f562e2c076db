#include "kernels/cuda/attention_kernels.cuh"
#include "kernels/cuda/attention_state.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/products.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr int kMergeThreads = 128;
constexpr int kMergeBytes = 72 * 1024;  // of partial results at a time

// [split][partial_floats] in shared memory, of one query row. Where there was room stand the
// factors of the merge with all before: left, right.
struct RowPartials {
  float* data;
  int dim;

  __device__ __forceinline__ float* at(int split) const {
    return data + split * static_cast<int>(partial_floats(dim));
  }
  __device__ __forceinline__ float top(int split) const { return at(split)[dim]; }
  __device__ __forceinline__ float sum(int split) const { return at(split)[dim + 1]; }
  __device__ __forceinline__ float2& factors(int split) const {
    return *reinterpret_cast<float2*>(at(split) + dim + 2);
  }
  // Of splits that are `stride` floats apart.
  __device__ __forceinline__ void copy(const float* from, std::size_t stride, int splits) const {
    const int lane = threadIdx.x % 32;
    for (int split = threadIdx.x / 32; split < splits; split += kMergeThreads / 32) {
      for (int i = 4 * lane; i < static_cast<int>(partial_floats(dim)); i += 128) {
        copy_chunk(shared_address(at(split) + i), from + split * stride + i, 16);
      }
    }
    commit_copies();
    wait_copies<0>();
  }
};

// The largest of all values of lower threads, and of `first`; in `all`, of all.
__device__ __forceinline__ float largest_before(float first, float own, float& all) {
  __shared__ float warps[kMergeThreads / 32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float lower = __shfl_up_sync(~0u, own, step);
    if (lane >= step) own = fmaxf(own, lower);
  }
  if (lane == 31) warps[warp] = own;
  __syncthreads();
  const float lower = __shfl_up_sync(~0u, own, 1);
  float before = lane > 0 ? fmaxf(first, lower) : first;
  all = first;
#pragma unroll
  for (int w = 0; w < kMergeThreads / 32; ++w) {
    if (w < warp) before = fmaxf(before, warps[w]);
    all = fmaxf(all, warps[w]);
  }
  return before;
}

// One block: one query row of one KV head. All its partial results are on their way at once; what
// follows from one another is little: tops, and then two operations a split.
__global__ void __launch_bounds__(kMergeThreads) merge(Attend job) {
  extern __shared__ __align__(16) float raw[];
  let_next_launch_begin();
  if (blockIdx.x >= *job.item_count) return wait_for_launch_before();
  const AttentionItem item = job.items[blockIdx.x];
  const SequencePlace sequence = job.sequences[item.sequence];
  const int dim = static_cast<int>(job.pages.layout.key_dim);
  const std::uint32_t kv_heads = job.pages.layout.kv_heads;
  const std::uint32_t group = job.heads / kv_heads;
  const std::uint32_t rows = rows_of_tile(item.tile, group, sequence.rows);
  wait_for_launch_before();
  if (blockIdx.z >= rows) return;
  const RowPartials partials = {raw, dim};
  const std::size_t floats = partial_floats(dim);
  const float* const first =
      job.partials + (item.partial + std::size_t{blockIdx.y} * rows + blockIdx.z) * floats;
  const std::size_t stride = std::size_t{kv_heads} * rows * floats;
  const int all = static_cast<int>(item.last_split - item.first_split);
  const int room = min(kMergeThreads, kMergeBytes / static_cast<int>(floats * sizeof(float)));
  float top = kNothing;
  float sum = 0;
  float totals[2] = {0, 0};  // of dimensions threadIdx.x and threadIdx.x + kMergeThreads
  for (int begin = 0; begin < all; begin += room) {
    const int splits = min(room, all - begin);
    partials.copy(first + begin * stride, stride, splits);
    __syncthreads();
    const int own = threadIdx.x;
    const float own_top = own < splits ? partials.top(own) : kNothing;
    const float before = largest_before(top, own_top, top);
    if (own < splits) {
      const MergeFactors by = merge_factors(before, own_top);
      partials.factors(own) = make_float2(by.left, by.right);
    }
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < splits; ++i) {
      const float2 factors = partials.factors(i);
      const MergeFactors by = {top, factors.x, factors.y};
      sum = merged(by, sum, partials.sum(i));
      for (int d = 0; d < 2; ++d) {
        const int dimension = threadIdx.x + d * kMergeThreads;
        if (dimension < dim) totals[d] = merged(by, totals[d], partials.at(i)[dimension]);
      }
    }
    __syncthreads();
  }
  const QueryRow row = query_row(item.tile, blockIdx.z, group, sequence.rows);
  for (int d = 0; d < 2; ++d) {
    const int dimension = threadIdx.x + d * kMergeThreads;
    if (dimension >= dim) continue;
    const std::uint32_t column = (blockIdx.y * group + row.head) * dim + dimension;
    job.operand[operand_place(sequence.first_row + row.token, column, job.rows)] =
        bf16_bits(__fdiv_rn(totals[d], sum));
  }
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
  launch_kernel(merge, dim3(job.items_max, job.pages.layout.kv_heads, kQueryRows), kMergeThreads,
                kMergeBytes, stream, job);
}

cudaError_t prepare_attend() {
  const cudaError_t merges = allow_shared(merge, kMergeBytes);
  for (const cudaError_t code :
       {merges, prepare_attend_64(), prepare_attend_128(), prepare_attend_256(), prepare_wide_64(),
        prepare_wide_128(), prepare_wide_256()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda

#include <type_traits>

#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/attention/softmax_state.cuh"
#include "kernels/cuda/launch.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr int kMergeBytes = 72 * 1024;  // of shared memory for partial results

// A row is merged by a thread for every dimension and one for the sum of weights.
constexpr int merge_threads(int dim) { return dim + 32; }

// The maximum of `first` and of the values of all lower threads of the warp: an exclusive scan.
__device__ __forceinline__ float largest_before(float first, float own) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float lower = __shfl_up_sync(~0u, own, step);
    if (lane >= step) own = fmaxf(own, lower);
  }
  const float lower = __shfl_up_sync(~0u, own, 1);
  return lane > 0 ? fmaxf(first, lower) : first;
}

// Partial results of one query row in shared memory, split after split, with the factors by which
// they merge in the padding.
template <int kDim>
struct RowPartials {
  static constexpr int kFloats = static_cast<int>(partial_floats(kDim));
  static constexpr int kRoom = kMergeBytes / (kFloats * 4);
  float* data;

  __device__ __forceinline__ float* at(int split) const { return data + split * kFloats; }
  // The factors that merge this split with all before it.
  __device__ __forceinline__ float2& factors(int split) const {
    return *reinterpret_cast<float2*>(at(split) + kDim + 2);
  }
  // Copies `splits` partial results that are `stride` floats apart.
  __device__ __forceinline__ void copy(const float* from, std::size_t stride, int splits) const {
    for (int split = threadIdx.x / 32; split < splits; split += merge_threads(kDim) / 32) {
      const std::uint32_t to = smem_address(at(split));
      for (int i = 4 * (threadIdx.x % 32); i < kFloats; i += 128) {
        cp_async_16(to + i * 4, from + split * stride + i, 16);
      }
    }
    cp_async_commit();
    cp_async_wait<0>();
  }
  // Called by one warp. Returns the maximum of `top` and of all splits.
  __device__ __forceinline__ float find_factors(float top, int splits) const {
    for (int begin = 0; begin < splits; begin += 32) {
      const int split = begin + threadIdx.x % 32;
      const float own = split < splits ? at(split)[kDim] : kNothing;
      const MergeFactors by = merge_factors(largest_before(top, own), own);
      if (split < splits) factors(split) = make_float2(by.left, by.right);
      top = __shfl_sync(~0u, fmaxf(by.top, own), 31);
    }
    return top;
  }
};

// A block merges one query row of one KV head. It copies all partial results at once, since memory
// takes longer than the chain of merges.
template <int kDim>
__global__ void __launch_bounds__(merge_threads(kDim)) merge(PagedAttention job) {
  extern __shared__ __align__(16) float raw[];
  __shared__ float sum;
  pdl_trigger();
  if (blockIdx.x >= *job.item_count) return pdl_wait();
  const AttentionItem item = job.items[blockIdx.x];
  const BatchSequence sequence = job.sequences[item.sequence];
  const std::uint32_t kv_heads = job.pages.layout.kv_heads;
  const std::uint32_t group = job.heads / kv_heads;
  const std::uint32_t rows = rows_of_tile(item.tile, group, sequence.rows);
  pdl_wait();
  if (blockIdx.z >= rows) return;
  using Partials = RowPartials<kDim>;
  const Partials partials = {raw};
  const float* const first =
      job.partials +
      (item.partial + std::size_t{blockIdx.y} * rows + blockIdx.z) * Partials::kFloats;
  const std::size_t stride = std::size_t{kv_heads} * rows * Partials::kFloats;
  const int all = static_cast<int>(item.last_split - item.first_split);
  const int dimension = threadIdx.x;
  const int column = min(dimension, kDim + 1);  // where the sum stands
  float top = kNothing;
  float total = 0;
  for (int begin = 0; begin < all; begin += Partials::kRoom) {
    const int splits = min(Partials::kRoom, all - begin);
    partials.copy(first + begin * stride, stride, splits);
    __syncthreads();
    if (threadIdx.x < 32) top = partials.find_factors(top, splits);
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < splits; ++i) {
      const float2 by = partials.factors(i);
      total = merged({kNothing, by.x, by.y}, total, partials.at(i)[column]);
    }
    __syncthreads();
  }
  if (dimension == kDim + 1) sum = total;
  __syncthreads();
  if (dimension >= kDim) return;
  const QueryRow row = query_row(item.tile, blockIdx.z, group, sequence.rows);
  const std::uint32_t result = (blockIdx.y * group + row.head) * kDim + dimension;
  job.activations[activation_index(sequence.first_row + row.token, result, job.rows)] =
      bf16_bits(__fdiv_rn(total, sum));
}

template <int kDim>
void launch_merge_splits_of(const PagedAttention& job, StreamHandle stream) {
  launch_kernel(merge<kDim>, dim3(job.items_max, job.pages.layout.kv_heads, kQueryRows),
                merge_threads(kDim), kMergeBytes, stream, job);
}

template <int kDim>
cudaError_t prepare_of() {
  for (const cudaError_t code :
       {prepare_paged_attention_of<kDim>(), prepare_paged_attention_wide_of<kDim>(),
        allow_dynamic_smem(merge<kDim>, kMergeBytes)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

// Calls `launch` with the size of the job's heads as a constant.
template <class Launch>
void with_head_dim(const PagedAttention& job, Launch launch) {
  switch (job.pages.layout.key_dim) {
    case 64:
      return launch(std::integral_constant<int, 64>());
    case 128:
      return launch(std::integral_constant<int, 128>());
    default:
      return launch(std::integral_constant<int, 256>());
  }
}

}  // namespace

void launch_paged_attention(const PagedAttention& job, StreamHandle stream) {
  with_head_dim(job,
                [&](auto dim) { launch_paged_attention_of<decltype(dim)::value>(job, stream); });
}

void launch_paged_attention_wide(const PagedAttention& job, StreamHandle stream) {
  with_head_dim(
      job, [&](auto dim) { launch_paged_attention_wide_of<decltype(dim)::value>(job, stream); });
}

void launch_merge_splits(const PagedAttention& job, StreamHandle stream) {
  with_head_dim(job, [&](auto dim) { launch_merge_splits_of<decltype(dim)::value>(job, stream); });
}

cudaError_t prepare_attention() {
  for (const cudaError_t code : {prepare_of<64>(), prepare_of<128>(), prepare_of<256>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda

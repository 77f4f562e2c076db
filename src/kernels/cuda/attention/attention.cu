#include <type_traits>

#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/attention/softmax_state.cuh"
#include "kernels/cuda/launch.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr int kMergeBytes = 72 * 1024;  // of shared memory for partial results

// A row is merged by a thread for every dimension and one for the sum of weights.
constexpr int merge_threads(int dim) { return (dim + 2 + 31) / 32 * 32; }
// Rows of many dimensions are merged by several blocks, so that all splits of a long context fit
// into shared memory.
constexpr int kMergeDimsMax = 256;
constexpr int kMergeDimsEach = 128;
constexpr int merge_dims(int dim) { return dim <= kMergeDimsMax ? dim : kMergeDimsEach; }
constexpr int merge_parts(int dim) { return (dim + merge_dims(dim) - 1) / merge_dims(dim); }

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

// Partial results of some dimensions of one query row in shared memory, split after split, with the
// factors by which they merge in the padding.
struct RowPartials {
  float* data;
  int dim;        // how many
  int first_dim;  // of all_dims
  int all_dims;

  __device__ __forceinline__ int floats() const { return static_cast<int>(partial_floats(dim)); }
  __device__ __forceinline__ int room() const { return kMergeBytes / (floats() * 4); }
  __device__ __forceinline__ float* at(int split) const { return data + split * floats(); }
  // The factors that merge this split with all before it.
  __device__ __forceinline__ float2& factors(int split) const {
    return *reinterpret_cast<float2*>(at(split) + dim + 2);
  }
  // Copies `splits` partial results that are `stride` floats apart.
  __device__ __forceinline__ void copy(const float* from, std::size_t stride, int splits) const {
    for (int split = threadIdx.x / 32; split < splits; split += blockDim.x / 32) {
      const std::uint32_t to = smem_address(at(split));
      const float* const row = from + split * stride;
      for (int i = 4 * (threadIdx.x % 32); i < floats(); i += 128) {
        cp_async_16(to + i * 4, row + (i < dim ? first_dim + i : all_dims), 16);
      }
    }
    cp_async_commit();
    cp_async_wait<0>();
  }
  // Called by one warp. Returns the maximum of `top` and of all splits.
  __device__ __forceinline__ float find_factors(float top, int splits) const {
    for (int begin = 0; begin < splits; begin += 32) {
      const int split = begin + threadIdx.x % 32;
      const float own = split < splits ? at(split)[dim] : kNothing;
      const MergeFactors by = merge_factors(largest_before(top, own), own);
      if (split < splits) factors(split) = make_float2(by.left, by.right);
      top = __shfl_sync(~0u, fmaxf(by.top, own), 31);
    }
    return top;
  }
};

// A block merges one query row of one KV head. It copies all partial results at once, since memory
// takes longer than the chain of merges.
__global__ void __launch_bounds__(merge_threads(kMergeDimsMax)) merge(PagedAttention job) {
  extern __shared__ __align__(16) float raw[];
  __shared__ float sum;
  __shared__ float2 sink_factors;
  pdl_trigger();
  if (blockIdx.x >= *job.item_count) return pdl_wait();
  const AttentionItem item = job.items[blockIdx.x];
  const BatchSequence sequence = job.sequences[item.sequence];
  const std::uint32_t kv_heads = job.pages.layout.kv_heads;
  const std::uint32_t group = job.heads / kv_heads;
  const std::uint32_t rows = rows_of_tile(item.tile, group, sequence.rows);
  pdl_wait();
  const std::uint32_t place = blockIdx.z % kQueryRows;
  if (place >= rows) return;
  const int all_dims = static_cast<int>(job.pages.layout.value_dim);
  const int first_dim = static_cast<int>(blockIdx.z / kQueryRows) * merge_dims(all_dims);
  const int dim = min(merge_dims(all_dims), all_dims - first_dim);
  const RowPartials partials = {raw, dim, first_dim, all_dims};
  const QueryRow row = query_row(item.tile, place, group, sequence.rows);
  const std::size_t row_floats = partial_floats(all_dims);
  const std::uint32_t head = blockIdx.y * group + row.head;
  const float* const first =
      job.partials + (item.partial + std::size_t{blockIdx.y} * rows + place) * row_floats;
  const std::size_t stride = std::size_t{kv_heads} * rows * row_floats;
  const int all = static_cast<int>(item.last_split - item.first_split);
  const int dimension = threadIdx.x;
  const int column = min(dimension, dim + 1);  // where the sum stands
  float top = kNothing;
  float total = 0;
  for (int begin = 0; begin < all; begin += partials.room()) {
    const int splits = min(partials.room(), all - begin);
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
  if (job.sinks != nullptr) {
    if (threadIdx.x == 0) {
      const MergeFactors by = merge_factors(top, job.sinks[head] * kLog2E);
      sink_factors = make_float2(by.left, by.right);
    }
    __syncthreads();
    const MergeFactors by = {kNothing, sink_factors.x, sink_factors.y};
    total = merged(by, total, dimension > dim ? 1.0f : 0.0f);
  }
  if (dimension == dim + 1) sum = total;
  __syncthreads();
  const ResultRow to(job, sequence.first_row + row.token, head);
  if (first_dim == 0) {
    for (std::uint32_t i = threadIdx.x; i < to.padding(); i += blockDim.x) *to.at(all_dims + i) = 0;
  }
  if (dimension >= dim) return;
  const float result = __fdiv_rn(total, sum);
  if (job.rotated != nullptr) {
    *to.rotated(first_dim + dimension) = result;
  } else {
    *to.at(first_dim + dimension) = bf16_bits(result);
  }
}

template <int kDim>
cudaError_t prepare_of() {
  for (const cudaError_t code :
       {prepare_paged_attention_of<kDim>(), prepare_paged_attention_wide_of<kDim>()}) {
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
  bool launched = false;
  if (is_plain_attention(job.pages.layout, job.cap)) {
    with_head_dim(job, [&](auto dim) {
      launched = launch_paged_attention_of<decltype(dim)::value>(job, stream);
    });
  }
  if (!launched) launch_general_attention(job, stream);
}

void launch_paged_attention_wide(const PagedAttention& job, StreamHandle stream) {
  with_head_dim(
      job, [&](auto dim) { launch_paged_attention_wide_of<decltype(dim)::value>(job, stream); });
}

void launch_merge_splits(const PagedAttention& job, StreamHandle stream) {
  const int dim = static_cast<int>(job.pages.layout.value_dim);
  const dim3 grid(job.items_max, job.pages.layout.kv_heads, kQueryRows * merge_parts(dim));
  launch_kernel(merge, grid, static_cast<std::uint32_t>(merge_threads(merge_dims(dim))),
                kMergeBytes, stream, job);
}

cudaError_t prepare_attention() {
  for (const cudaError_t code :
       {prepare_of<64>(), prepare_of<128>(), prepare_of<256>(), prepare_general_attention(),
        allow_dynamic_smem(merge, kMergeBytes)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda

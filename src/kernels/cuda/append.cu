#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/tensor_core.cuh"

namespace pagoda::kernels::cuda {
namespace {

using kv::memory::Element;

constexpr std::uint32_t kThreads = 256;

__device__ std::uint16_t rounded(Element element, float value) {
  return element == Element::kBF16 ? bf16_bits(value) : __half_as_ushort(__float2half_rn(value));
}

// A value of a head of row `head`, after the rotation where it has one.
__device__ float rotated(const Append& job, const float* head, std::uint32_t d,
                         const float* cosines, const float* sines) {
  if (d >= 2 * job.pairs) return head[d];
  const std::uint32_t pair = job.adjacent ? d / 2 : d % job.pairs;
  const bool second = job.adjacent ? d % 2 != 0 : d >= job.pairs;
  const float a = head[job.adjacent ? 2 * pair : pair];
  const float b = head[job.adjacent ? 2 * pair + 1 : pair + job.pairs];
  return second ? a * sines[pair] + b * cosines[pair] : a * cosines[pair] - b * sines[pair];
}

// One warp: one head of keys and values of one row.
__device__ void store_head(const Append& job, std::uint32_t row, std::uint32_t head,
                           const float* cosines, const float* sines) {
  const RowPlace place = job.places[row];
  if (place.position == kNoPosition) return;
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t dim = layout.key_dim;
  const std::size_t columns = std::size_t{job.heads + 2 * layout.kv_heads} * dim;
  const float* const keys = job.qkv + row * columns + std::size_t{job.heads + head} * dim;
  const float* const values = keys + std::size_t{layout.kv_heads} * dim;
  const std::uint32_t block = place.position / layout.block_tokens;
  const std::uint32_t token = place.position % layout.block_tokens;
  const std::uint32_t page = job.pages.tables[job.sequences[place.sequence].table + block];
  std::byte* const data = job.pages.data + std::size_t{page} * layout.page_bytes();
  auto* const key_row =
      reinterpret_cast<std::uint16_t*>(data + layout.key_offset(job.pages.layer, head, token));
  auto* const value_row =
      reinterpret_cast<std::uint16_t*>(data + layout.value_offset(job.pages.layer, head, token));
  const std::uint32_t lane = threadIdx.x % 32;
  bool finite = true;
  for (std::uint32_t d = lane; d < dim; d += 32) {
    const float key = rotated(job, keys, d, cosines, sines);
    const std::uint16_t value = rounded(layout.element, values[d]);
    const std::uint16_t key_bits = rounded(layout.element, key);
    const std::uint32_t exponent = layout.element == Element::kBF16 ? 0x7F80u : 0x7C00u;
    finite = finite && (value & exponent) != exponent && (key_bits & exponent) != exponent;
    key_row[d] = key_bits;
    value_row[d] = value;
  }
  if (__all_sync(~0u, finite)) return;
  for (std::uint32_t d = lane; d < dim; d += 32) {
    key_row[d] = 0x7FFFu;  // a NaN in both elements
    value_row[d] = 0;
  }
}

__global__ void __launch_bounds__(kThreads) append(Append job) {
  let_next_launch_begin();
  wait_for_launch_before();
  const std::uint32_t row = blockIdx.x;
  const std::uint32_t position = job.places[row].position;
  const std::uint32_t known = position == kNoPosition ? 0 : position;
  const float* const cosines = job.cosines + std::size_t{known} * job.pairs;
  const float* const sines = job.sines + std::size_t{known} * job.pairs;
  const std::uint32_t dim = job.pages.layout.key_dim;
  const std::uint32_t kv_heads = job.pages.layout.kv_heads;
  const std::size_t columns = std::size_t{job.heads + 2 * kv_heads} * dim;
  for (std::uint32_t i = threadIdx.x; i < job.heads * dim; i += kThreads) {
    const float* const head = job.qkv + row * columns + i / dim * dim;
    job.query[std::size_t{row} * job.heads * dim + i] =
        rounded(job.pages.layout.element, rotated(job, head, i % dim, cosines, sines));
  }
  for (std::uint32_t head = threadIdx.x / 32; head < kv_heads; head += kThreads / 32) {
    store_head(job, row, head, cosines, sines);
  }
}

}  // namespace

void launch_append(const Append& job, Stream stream) {
  launch_kernel(append, dim3(job.rows), kThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

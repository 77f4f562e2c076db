#include "kernels/cuda/attention/lane_row.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kWarps = 4;
// The values of a head that a lane has: of heads of up to 256 dimensions, and of the longest.
constexpr std::uint32_t kShortLane = 256 / 32;
constexpr std::uint32_t kLongLane = kHeadDimMax / 32;

// A warp stores one head of a row's key and value, which stand in `key_head` and `value_head`.
template <std::uint32_t kLaneValues>
__device__ void store_head(const RopeAndStoreKv& job, const BatchToken& batch_token,
                           std::uint32_t head, const Rotation& rotation, const float* key_head,
                           const float* value_head) {
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t layer = job.pages.layer;
  const std::uint32_t dim = layout.key_dim;
  const std::uint32_t block = batch_token.position / layout.block_tokens;
  const std::uint32_t token = batch_token.position % layout.block_tokens;
  const std::uint32_t page = job.pages.tables[job.sequences[batch_token.sequence].table + block];
  std::byte* const data = job.pages.data + std::size_t{page} * layout.page_bytes();
  LaneRow<kLaneValues> keys = {.data = data + layout.key_offset(layer, head, token),
                               .scale = data + layout.key_scale_offset(layer, head, token)};
  LaneRow<kLaneValues> values = {.data = data + layout.value_offset(layer, head, token),
                                 .scale = data + layout.value_scale_offset(layer, head, token)};
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    const std::uint32_t d = threadIdx.x % 32 + 32 * i;
    if (d >= dim) break;
    keys.values[i] = rotation.of(key_head, d);
    values.values[i] = value_head[d];
  }
  const bool keys_finite = keys.finite(layout.elements.keys);
  if (!values.finite(layout.elements.keys) || !keys_finite) {
    keys.fill_nan();
    values.fill(0);
    note_nonfinite(job.nonfinite, batch_token);
  }
  keys.store(layout.elements.keys, dim);
  values.store(layout.elements.keys, dim);
}

// A warp takes one head of a query, or one of a key and value.
template <std::uint32_t kLaneValues>
__global__ void __launch_bounds__(kWarps * 32) rope_and_store_kv(RopeAndStoreKv job) {
  pdl_trigger();
  const std::uint32_t row = blockIdx.x;
  const BatchToken batch_token = job.batch_tokens[row];
  const std::uint32_t known = batch_token.position == kNoPosition ? 0 : batch_token.position;
  const Rotation rotation = {.cosines = job.cosines + std::size_t{known} * job.pairs,
                             .sines = job.sines + std::size_t{known} * job.pairs,
                             .pairs = job.pairs,
                             .adjacent = job.adjacent};
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t dim = layout.key_dim;
  const std::uint32_t head = blockIdx.y * kWarps + threadIdx.x / 32;
  const std::uint32_t kv_heads = job.stores ? layout.kv_heads : 0;
  const float* const from = job.qkv + (std::size_t{row} * (job.heads + 2 * kv_heads) + head) * dim;
  pdl_wait();
  if (head >= job.heads) {
    if (head >= job.heads + kv_heads || batch_token.position == kNoPosition) return;
    const float* const values = from + std::size_t{kv_heads} * dim;
    return store_head<kLaneValues>(job, batch_token, head - job.heads, rotation, from, values);
  }
  // Queries of an 8-bit cache are fp16, which holds all that its bounds let through.
  const Element element = layout.elements.keys == Element::kBF16 ? Element::kBF16 : Element::kF16;
  LaneRow<kLaneValues> query = {.data = reinterpret_cast<std::byte*>(
                                    job.query + (std::size_t{row} * job.heads + head) * dim)};
  const float factor = job.query_factors != nullptr ? job.query_factors[known] : 1.0f;
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    const std::uint32_t d = threadIdx.x % 32 + 32 * i;
    if (d < dim) query.values[i] = rotation.of(from, d) * factor;
  }
  if (batch_token.position != kNoPosition && !query.finite(layout.elements.keys)) {
    query.fill_nan();
    note_nonfinite(job.nonfinite, batch_token);
  }
  query.store(element, dim);
}

}  // namespace

void launch_rope_and_store_kv(const RopeAndStoreKv& job, StreamHandle stream) {
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t heads = job.heads + (job.stores ? layout.kv_heads : 0);
  const dim3 grid(job.rows, (heads + kWarps - 1) / kWarps);
  const auto kernel = layout.key_dim <= 32 * kShortLane ? rope_and_store_kv<kShortLane>
                                                        : rope_and_store_kv<kLongLane>;
  launch_kernel(kernel, grid, kWarps * 32, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

#include "kernels/cuda/attention/cache_codes.cuh"
#include "kernels/cuda/attention/lane_row.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"
#include "kv/memory/rotation_blocks.h"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kWarps = 4;
// The values of a head that a lane has: of heads of up to 256 dimensions, and of the longest.
constexpr std::uint32_t kShortLane = 256 / 32;
constexpr std::uint32_t kLongLane = kHeadDimMax / 32;

// A warp stores one head of a row's key and value, which stand in `key_head` and `value_head`.
template <std::uint32_t kLaneValues, bool kCodes>
__device__ void store_head(const RopeAndStoreKv& job, const BatchToken& batch_token,
                           std::uint32_t head, const Rotation& rotation, const float* key_head,
                           const float* value_head) {
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t layer = job.pages.layer;
  const std::uint32_t dim = layout.key_dim;
  const std::uint32_t block = batch_token.position / layout.block_tokens;
  const std::uint32_t token = batch_token.position % layout.block_tokens;
  const std::uint32_t page =
      job.pages.tables[job.sequences[batch_token.sequence].table_index(block)];
  std::byte* const data = job.pages.data + std::size_t{page} * layout.page_bytes();
  LaneRow<kLaneValues, kCodes> keys = {.data = data + layout.key_offset(layer, head, token),
                                       .scale = data + layout.key_scale_offset(layer, head, token),
                                       .scale_step = layout.scale_step()};
  LaneRow<kLaneValues, kCodes> values = {
      .data = data + layout.value_offset(layer, head, token),
      .scale = data + layout.value_scale_offset(layer, head, token),
      .scale_step = layout.scale_step()};
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    const std::uint32_t d = threadIdx.x % 32 + 32 * i;
    if (d >= dim) break;
    keys.values[i] = rotation.of(key_head, d);
    values.values[i] = value_head[d];
  }
  const kv::memory::RotationBlocks blocks = rotation_blocks(layout);
  keys.rotate(blocks.keys);
  values.rotate(blocks.values);
  const bool keys_finite = keys.finite(layout.elements.keys);
  if (!values.finite(layout.elements.values) || !keys_finite) {
    keys.fill_nan();
    values.fill(0);
    note_nonfinite(job.nonfinite, batch_token);
  }
  keys.store(layout.elements.keys, dim);
  values.store(layout.elements.values, dim);
}

// A warp stores one head of a row's query, as at `position`.
template <std::uint32_t kLaneValues, bool kCodes>
__device__ void store_query(const RopeAndStoreKv& job, std::uint32_t row, std::uint32_t position,
                            const BatchToken& batch_token, const float* from, std::uint16_t* to) {
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t dim = layout.key_dim;
  const Rotation rotation = Rotation::of(job, row, position);
  const float factor =
      job.query_factors != nullptr ? job.query_factors[Rotation::place(job, row, position)] : 1.0f;
  LaneRow<kLaneValues, kCodes> query = {.data = reinterpret_cast<std::byte*>(to)};
  const std::uint32_t block = rotation_blocks(layout).keys;
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    const std::uint32_t d = threadIdx.x % 32 + 32 * i;
    if (d < dim) query.values[i] = rotation.of(from, d);
  }
  query.rotate(block);
#pragma unroll
  for (float& value : query.values) value *= factor;
  if (batch_token.position != kNoPosition && !query.finite(layout.elements.keys)) {
    query.fill_nan();
    note_nonfinite(job.nonfinite, batch_token);
  }
  // Queries of codes are fp16, which holds all that their bounds let through.
  query.store_wide(layout.elements.keys, dim);
}

// A warp takes one head of a query, or one of a key and value.
template <std::uint32_t kLaneValues, bool kCodes>
__global__ void __launch_bounds__(kWarps * 32)
    rope_and_store_kv(const __grid_constant__ RopeAndStoreKv job) {
  pdl_trigger();
  const std::uint32_t row = blockIdx.x;
  const BatchToken batch_token = job.batch_tokens[row];
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t dim = layout.key_dim;
  const std::uint32_t head = blockIdx.y * kWarps + threadIdx.x / 32;
  const std::uint32_t kv_heads = job.stores ? layout.kv_heads : 0;
  const float* const from = job.qkv + (std::size_t{row} * (job.heads + 2 * kv_heads) + head) * dim;
  pdl_wait();
  if (head >= job.heads) {
    if (head >= job.heads + kv_heads || batch_token.position == kNoPosition) return;
    const float* const values = from + std::size_t{kv_heads} * dim;
    return store_head<kLaneValues, kCodes>(job, batch_token, head - job.heads,
                                           Rotation::of(job, row, batch_token.position), from,
                                           values);
  }
  const std::size_t at = (std::size_t{row} * job.heads + head) * dim;
  store_query<kLaneValues, kCodes>(job, row, batch_token.position, batch_token, from,
                                   job.query + at);
  const SinkQuery sinks = SinkQuery::of(job, batch_token);
  if (!sinks.there) return;
  store_query<kLaneValues, kCodes>(job, row, sinks.position, batch_token, from,
                                   job.sink_query + at);
}

}  // namespace

void launch_rope_and_store_kv(const RopeAndStoreKv& job, StreamHandle stream) {
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t heads = job.heads + (job.stores ? layout.kv_heads : 0);
  const dim3 grid(job.rows, (heads + kWarps - 1) / kWarps);
  const auto launch = [&](auto kernel) {
    launch_kernel(kernel, grid, kWarps * 32, 0, stream, job);
  };
  const bool is_short = layout.key_dim <= 32 * kShortLane;
  if (has_codes(layout.elements.values)) {
    return is_short ? launch(rope_and_store_kv<kShortLane, true>)
                    : launch(rope_and_store_kv<kLongLane, true>);
  }
  return is_short ? launch(rope_and_store_kv<kShortLane, false>)
                  : launch(rope_and_store_kv<kLongLane, false>);
}

}  // namespace pagoda::kernels::cuda

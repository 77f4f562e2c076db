#include "kernels/cuda/attention/lane_row.cuh"
#include "kernels/cuda/launch.cuh"
#include "kv/memory/rotation_blocks.h"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kWarps = 4;
constexpr std::uint32_t kLane = kLatentDimMax / 32;

using LatentRow = LaneRow<kLane>;

// Value d of a row: from `plain` below the rank, else rotated.
__device__ __forceinline__ void fill_row(LatentRow& row, const float* plain, const float* rotating,
                                         const Rotation& rotation,
                                         const kv::memory::PageLayout& layout) {
  const std::uint32_t rank = layout.value_dim;
#pragma unroll
  for (std::uint32_t i = 0; i < kLane; ++i) {
    const std::uint32_t d = threadIdx.x % 32 + 32 * i;
    if (d >= layout.key_dim) break;
    row.values[i] = d < rank ? plain[d] : rotation.of(rotating, d - rank);
  }
  row.rotate(rotation_blocks(layout).keys);
}

// A warp stores the row that a token keeps.
__device__ void store_row(const RopeAndStoreLatents& job, const BatchToken& batch_token,
                          const float* key, const Rotation& rotation) {
  const kv::memory::PageLayout& layout = job.to.pages.layout;
  const std::uint32_t block = batch_token.position / layout.block_tokens;
  const std::uint32_t token = batch_token.position % layout.block_tokens;
  const std::uint32_t page =
      job.to.pages.tables[job.to.sequences[batch_token.sequence].table_index(block)];
  std::byte* const data = job.to.pages.data + std::size_t{page} * layout.page_bytes();
  LatentRow row = {.data = data + layout.key_offset(job.to.pages.layer, 0, token),
                   .scale = data + layout.key_scale_offset(job.to.pages.layer, 0, token),
                   .scale_step = layout.scale_step()};
  const std::uint32_t rank = layout.value_dim;
  fill_row(row, key, key + rank, rotation, layout);
  if (!row.finite(layout.elements.keys)) {
    note_nonfinite(job.to.nonfinite, batch_token);
    row.fill_nan();
#pragma unroll
    for (std::uint32_t i = 0; i < kLane; ++i) {
      if (threadIdx.x % 32 + 32 * i < rank) row.values[i] = 0;
    }
  }
  row.store(layout.elements.keys, layout.key_dim);
}

// A warp stores one head of a row's query, as at `position`.
__device__ void store_query(const RopeAndStoreLatents& job, std::uint32_t row, std::uint32_t head,
                            std::uint32_t position, const BatchToken& batch_token,
                            std::uint16_t* queries) {
  const kv::memory::PageLayout& layout = job.to.pages.layout;
  const std::uint32_t rank = layout.value_dim;
  const std::size_t index = std::size_t{row} * job.to.heads + head;
  LatentRow query = {.data = reinterpret_cast<std::byte*>(queries + index * layout.key_dim)};
  fill_row(query, job.absorbed + index * rank,
           job.raw_queries + (index + 1) * job.query_dim - (layout.key_dim - rank),
           Rotation::of(job.to, row, position), layout);
  const float factor = job.to.query_factors != nullptr
                           ? job.to.query_factors[Rotation::place(job.to, row, position)]
                           : 1.0f;
#pragma unroll
  for (float& value : query.values) value *= factor;
  if (batch_token.position != kNoPosition && !query.finite(layout.elements.keys)) {
    query.fill_nan();
    note_nonfinite(job.to.nonfinite, batch_token);
  }
  query.store_wide(layout.elements.keys, layout.key_dim);
}

// A warp takes one head of a query, or the row to keep.
__global__ void __launch_bounds__(kWarps * 32)
    rope_and_store_latents(const __grid_constant__ RopeAndStoreLatents job) {
  pdl_trigger();
  pdl_wait();
  const std::uint32_t row = blockIdx.x;
  const BatchToken batch_token = job.to.batch_tokens[row];
  const kv::memory::PageLayout& layout = job.to.pages.layout;
  const std::uint32_t head = blockIdx.y * kWarps + threadIdx.x / 32;
  if (head == job.to.heads && batch_token.position != kNoPosition) {
    store_row(job, batch_token, job.keys + std::size_t{row} * layout.key_dim,
              Rotation::of(job.to, row, batch_token.position));
  }
  if (head >= job.to.heads) return;
  store_query(job, row, head, batch_token.position, batch_token, job.to.query);
  const SinkQuery sinks = SinkQuery::of(job.to, batch_token);
  if (sinks.there) store_query(job, row, head, sinks.position, batch_token, job.to.sink_query);
}

constexpr std::uint32_t kPackThreads = 128;

// A block packs one head of one row; columns up to the next chunk are zeros.
__global__ void __launch_bounds__(kPackThreads) pack_heads(PackHeads job) {
  pdl_trigger();
  pdl_wait();
  const std::size_t row = blockIdx.x;
  const float* const from = job.values + (row * job.heads + blockIdx.y) * job.stride;
  Bf16* const to = job.activations + blockIdx.y * activation_values(job.rows, job.width);
  const std::uint32_t columns = chunks_of(job.width) * kChunkColumns;
  for (std::uint32_t i = threadIdx.x; i < columns; i += kPackThreads) {
    to[activation_index(row, i, job.rows)] = i < job.width ? bf16_bits(from[i]) : Bf16{0};
  }
}

}  // namespace

void launch_rope_and_store_latents(const RopeAndStoreLatents& job, StreamHandle stream) {
  launch_kernel(rope_and_store_latents, dim3(job.to.rows, (job.to.heads + 1 + kWarps - 1) / kWarps),
                kWarps * 32, 0, stream, job);
}

void launch_pack_heads(const PackHeads& job, StreamHandle stream) {
  launch_kernel(pack_heads, dim3(job.rows, job.heads), kPackThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda

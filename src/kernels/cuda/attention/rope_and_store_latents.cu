#include "kernels/cuda/attention/lane_row.cuh"
#include "kernels/cuda/launch.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kWarps = 4;
constexpr std::uint32_t kLane = kLatentDimMax / 32;

using LatentRow = LaneRow<kLane>;

// Value d of a row: from `plain` below the rank, else rotated.
__device__ __forceinline__ void fill_row(LatentRow& row, const float* plain, const float* rotating,
                                         const Rotation& rotation, std::uint32_t rank,
                                         std::uint32_t dim, float factor) {
#pragma unroll
  for (std::uint32_t i = 0; i < kLane; ++i) {
    const std::uint32_t d = threadIdx.x % 32 + 32 * i;
    if (d >= dim) break;
    row.values[i] = (d < rank ? plain[d] : rotation.of(rotating, d - rank)) * factor;
  }
}

// A warp stores the row that a token keeps.
__device__ void store_row(const RopeAndStoreLatents& job, const BatchToken& batch_token,
                          const float* key, const Rotation& rotation) {
  const kv::memory::PageLayout& layout = job.to.pages.layout;
  const std::uint32_t block = batch_token.position / layout.block_tokens;
  const std::uint32_t token = batch_token.position % layout.block_tokens;
  const std::uint32_t page =
      job.to.pages.tables[job.to.sequences[batch_token.sequence].table + block];
  std::byte* const data = job.to.pages.data + std::size_t{page} * layout.page_bytes();
  LatentRow row = {.data = data + layout.key_offset(job.to.pages.layer, 0, token),
                   .scale = data + layout.key_scale_offset(job.to.pages.layer, 0, token)};
  const std::uint32_t rank = layout.value_dim;
  fill_row(row, key, key + rank, rotation, rank, layout.key_dim, 1.0f);
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

// A warp takes one head of a query, or the row to keep.
__global__ void __launch_bounds__(kWarps * 32)
    rope_and_store_latents(const __grid_constant__ RopeAndStoreLatents job) {
  pdl_trigger();
  pdl_wait();
  const std::size_t row = blockIdx.x;
  const BatchToken batch_token = job.to.batch_tokens[row];
  const bool there = batch_token.position != kNoPosition;
  const std::uint32_t known = there ? batch_token.position : 0;
  const Rotation rotation = {.cosines = job.to.cosines + std::size_t{known} * job.to.pairs,
                             .sines = job.to.sines + std::size_t{known} * job.to.pairs,
                             .pairs = job.to.pairs,
                             .adjacent = job.to.adjacent};
  const kv::memory::PageLayout& layout = job.to.pages.layout;
  const std::uint32_t rank = layout.value_dim;
  const std::uint32_t head = blockIdx.y * kWarps + threadIdx.x / 32;
  if (head == job.to.heads && there) {
    store_row(job, batch_token, job.keys + row * layout.key_dim, rotation);
  }
  if (head >= job.to.heads) return;
  const std::size_t index = row * job.to.heads + head;
  LatentRow query = {.data = reinterpret_cast<std::byte*>(job.to.query + index * layout.key_dim)};
  const float factor = job.to.query_factors != nullptr ? job.to.query_factors[known] : 1.0f;
  fill_row(query, job.absorbed + index * rank,
           job.raw_queries + (index + 1) * job.query_dim - (layout.key_dim - rank), rotation, rank,
           layout.key_dim, factor);
  if (there && !query.finite(layout.elements.keys)) {
    query.fill_nan();
    note_nonfinite(job.to.nonfinite, batch_token);
  }
  query.store(layout.elements.keys == Element::kBF16 ? Element::kBF16 : Element::kF16,
              layout.key_dim);
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

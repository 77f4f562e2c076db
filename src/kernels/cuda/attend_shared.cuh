// One split of one query tile, shared by the warps of a block: each takes a tile of keys, and what
// they found is added up in the order in which one warp alone would have met them, to the same
// bits. For a few long contexts: a split then takes as long as one tile of keys.
#pragma once

#include "kernels/cuda/attend.cuh"

namespace pagoda::kernels::cuda {

static_assert(kSplitKeys == kAttendWarps * kTileKeys, "a warp for every tile of keys of a split");

// What the warps leave for each other.
template <int kDim>
struct SharedSplit {
  float values[kAttendWarps][kQueryRows][kDim];
  float tops[kAttendWarps][kQueryRows];
  float added[kAttendWarps][4][kQueryRows];  // by lane of a quad
};

// The tile of keys of this warp: its part of the split. Tops are exchanged on the way.
template <int kDim, bool kBrain>
__device__ __forceinline__ void attend_part(const Attend& job, const TileRows& tile,
                                            const TileWalk<kDim>& walk, int split,
                                            SharedSplit<kDim>& shared) {
  const std::uint32_t warp = threadIdx.x / 32;
  const int quad = threadIdx.x % 4;
  const float scale = job.scale * kLog2E;
  const int base = split * static_cast<int>(kSplitKeys) + static_cast<int>(warp * kTileKeys);
  const bool any = base <= walk.reach.last && base + static_cast<int>(kTileKeys) > walk.reach.first;
  uint4 query[2][kDim / 32];
  load_query<kDim>(job, tile, query);
  KeyRows rows[kTileKeys / 16];
  float score[kTileKeys / 8][4] = {};
  walk.rows_of_tile(base, rows);
  if (any) score_tile<kDim, kBrain>(walk, query, base, rows, score);
  float top[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = threadIdx.x % 32 / 4 + 8 * r;
    top[r] = any ? best_score(walk.reach, r, base, score) * scale : kNothing;
    if (quad == 0) shared.tops[warp][row] = top[r];
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = threadIdx.x % 32 / 4 + 8 * r;
    for (std::uint32_t w = 0; w < warp; ++w) top[r] = fmaxf(top[r], shared.tops[w][row]);
    shared.added[warp][quad][row] = any ? weigh(walk.reach, r, base, scale, top[r], score) : 0.0f;
  }
  const TileWeights weights = packed_weights<kBrain>(score);
#pragma unroll
  for (int h = 0; h < kDim / 64; ++h) {
    float values[8][4] = {};
    if (any) weighted_values<kDim, kBrain>(walk, base, h, rows, weights, values);
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const int row = threadIdx.x % 32 / 4 + i % 4 / 2 * 8;
      shared.values[warp][row][64 * h + 16 * quad + i % 2 * 8 + i / 4] = values[i / 4][i % 4];
    }
  }
  __syncthreads();
}

// The sums of one query row over the block's tiles of keys, left to right.
struct RowSums {
  float value;
  float sum;
  float top;
};
template <int kDim>
__device__ __forceinline__ RowSums add_parts(const SharedSplit<kDim>& shared, std::uint32_t row,
                                             std::uint32_t dimension) {
  RowSums sums = {0, 0, kNothing};
  float lanes[4] = {};
#pragma unroll
  for (std::uint32_t w = 0; w < kAttendWarps; ++w) {
    const float top = fmaxf(sums.top, shared.tops[w][row]);
    const float shrink = exp2_fast(sums.top - weighed_from(top));
    sums.value = __fmaf_rn(sums.value, shrink, shared.values[w][row][dimension]);
#pragma unroll
    for (int i = 0; i < 4; ++i) lanes[i] = __fmaf_rn(lanes[i], shrink, shared.added[w][i][row]);
    sums.top = top;
  }
  sums.sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  return sums;
}

// One block: one item, of one split.
template <int kDim, bool kBrain>
__global__ void __launch_bounds__(kAttendWarps * 32) attend_shared(Attend job) {
  extern __shared__ __align__(16) std::byte raw[];
  auto& shared = *reinterpret_cast<SharedSplit<kDim>*>(raw);
  let_next_launch_begin();
  wait_for_launch_before();
  if (blockIdx.x >= *job.item_count) return;
  const AttentionItem item = job.items[blockIdx.x];
  const TileRows rows = rows_of_item(job, item);
  const TileWalk<kDim> walk = walk_of<kDim>(job, item, rows);
  attend_part<kDim, kBrain>(job, rows, walk, static_cast<int>(item.first_split), shared);
  const std::uint32_t tile_rows = rows_of_tile(item.tile, rows.group, rows.sequence.rows);
  for (std::uint32_t i = threadIdx.x; i < tile_rows * kDim; i += kAttendWarps * 32) {
    const std::uint32_t row = i / kDim;
    const std::uint32_t dimension = i % kDim;
    const RowSums sums = add_parts<kDim>(shared, row, dimension);
    if (item.partial == kWhole) {
      const QueryRow query = query_row(item.tile, row, rows.group, rows.sequence.rows);
      const std::uint32_t column = (rows.kv_head * rows.group + query.head) * kDim + dimension;
      job.operand[operand_place(rows.sequence.first_row + query.token, column, job.rows)] =
          bf16_bits(__fdiv_rn(sums.value, sums.sum));
      continue;
    }
    float* const partial =
        job.partials + (std::size_t{item.partial} + rows.kv_head * tile_rows + row) * (kDim + 2);
    partial[dimension] = sums.value;
    if (dimension != 0) continue;
    partial[kDim] = sums.top;
    partial[kDim + 1] = sums.sum;
  }
}

template <int kDim, bool kBrain>
void launch_shared_of(const Attend& job, cudaStream_t stream) {
  launch_kernel(attend_shared<kDim, kBrain>, dim3(job.items_max, job.pages.layout.kv_heads),
                kAttendWarps * 32, sizeof(SharedSplit<kDim>), stream, job);
}

template <int kDim, bool kBrain>
cudaError_t prepare_shared_of() {
  return cudaFuncSetAttribute(attend_shared<kDim, kBrain>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(SharedSplit<kDim>));
}

}  // namespace pagoda::kernels::cuda

// Paged attention of heads that the kernels of plain attention (ops.h) do not take: any number of
// dimensions, other values than keys have dimensions, latents whose values stand in their keys,
// soft caps, sinks. One kernel for one query row and for many.
//
// A block takes one query tile (16 query rows of one KV head) through some splits, tile of keys by
// tile of keys. Its eight warps score eight keys each; then they weigh values, a warp a part of the
// dimensions. Keys and values come through a ring in shared memory, a tile at a time. The order of
// every sum is that of paged_attention.cuh.
#pragma once

#include "kernels/cuda/attention/piece_ring.cuh"
#include "kernels/cuda/attention/query_tile.cuh"
#include "kernels/cuda/gates.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/device_math.cuh"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

// Warps exchange weights, maxima and sums in shared memory.
struct GeneralShared {
  static constexpr int kWeightRow = kGeneralTile + 8;  // 16-bit weights, padded as rows are
  alignas(16) std::uint16_t weights[kQueryRows][kWeightRow];
  float exact_weights[kQueryRows][kGeneralTile + 4];  // before they are rounded
  float best[kGeneralWarps][kQueryRows];
  float sums[kQueryRows];
};

template <bool kBf16>
__device__ __forceinline__ void general_multiply(float (&c)[4], const std::uint32_t (&a)[4],
                                                 std::uint32_t b0, std::uint32_t b1) {
  if constexpr (kBf16) {
    mma_bf16(c, a, b0, b1);
  } else {
    mma_fp16(c, a, b0, b1);
  }
}

// The address of this lane's row of the left factor of a step, [16 rows][row_bytes].
__device__ __forceinline__ std::uint32_t left_address(const void* rows, int row_bytes, int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return smem_address(rows) + lane % 16 * row_bytes + (2 * step + lane / 16) * 16;
}

// Copies the tile's queries to shared memory; rows and dimensions that are not there are zeros.
__device__ __forceinline__ void load_general_queries(const PagedAttention& job,
                                                     const std::uint16_t* from,
                                                     const GeneralShape& shape,
                                                     const QueryTile& rows,
                                                     const AttentionItem& item, std::byte* to) {
  const int chunks = 2 * shape.key_steps;
  const auto dim = job.pages.layout.key_dim;
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(kQueryRows) * chunks;
       i += kGeneralThreads) {
    const int row = i / chunks;
    const int chunk = i % chunks;
    const QueryRow query =
        query_row(item.tile, static_cast<std::uint32_t>(row), rows.group, rows.sequence.rows);
    uint4 values = make_uint4(0, 0, 0, 0);
    if (query.there && chunk * 8 < static_cast<int>(dim)) {
      const std::size_t head = std::size_t{rows.sequence.first_row + query.token} * job.heads +
                               rows.kv_head * rows.group + query.head;
      values = *reinterpret_cast<const uint4*>(from + head * dim + chunk * 8);
    }
    *reinterpret_cast<uint4*>(to + row * shape.key_row_bytes + chunk * 16) = values;
  }
}

// The scores of a warp's eight keys: value 2r + i is that of row g + 8r and key 2t + i.
template <bool kBf16>
__device__ __forceinline__ void score_keys(const GeneralShape& shape, const std::byte* queries,
                                           const std::byte* keys, float (&score)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 * 8 + lane % 8;
  const std::uint32_t right = smem_address(keys) + row * shape.key_row_bytes + lane / 8 * 16;
  for (float& value : score) value = 0;
  for (int step = 0; step < shape.key_steps; step += 2) {
    std::uint32_t b[4];  // of two steps
    ldmatrix_x4(b, right + step * 32);
    std::uint32_t a[4];
    ldmatrix_x4(a, left_address(queries, shape.key_row_bytes, step));
    general_multiply<kBf16>(score, a, b[0], b[1]);
    if (step + 1 == shape.key_steps) break;
    ldmatrix_x4(a, left_address(queries, shape.key_row_bytes, step + 1));
    general_multiply<kBf16>(score, a, b[2], b[3]);
  }
}

// Sixteen value dimensions are a unit; a warp has every eighth of them, at most kUnits.
//
// The sums of a block's query rows: those of a split so far, and of all splits before it. A thread
// has of rows g and g + 8 the dimensions of its warp's units, [unit][half][2r + i], and the rows'
// maxima. The first two warps have the weights' sums: thread 4g + t of warp r of row g + 8r.
template <int kUnits>
struct GeneralSums {
  float values[kUnits][2][4] = {};
  float top[2] = {kNothing, kNothing};
  float lane = 0;  // the part of the weights that lane t adds up

  float all_values[kUnits][2][4] = {};
  float all_top[2] = {kNothing, kNothing};
  float all_sum = 0;

  // The sum of the split's weights; the first two warps call it.
  __device__ __forceinline__ float split_sum() const {
    const float pair = lane + __shfl_xor_sync(~0u, lane, 1);
    return pair + __shfl_xor_sync(~0u, pair, 2);
  }
  __device__ __forceinline__ void clear_split() {
#pragma unroll
    for (auto& unit : values) {
      for (auto& half : unit) {
        for (float& value : half) value = 0;
      }
    }
    top[0] = top[1] = kNothing;
    lane = 0;
  }
  // Merges a right side into all_values; `right(u, h, i)` is its value, right_sum its weights' sum.
  template <class Right>
  __device__ __forceinline__ void merge(const float (&right_top)[2], float right_sum,
                                        Right&& right) {
    const MergeFactors by[2] = {merge_factors(all_top[0], right_top[0]),
                                merge_factors(all_top[1], right_top[1])};
#pragma unroll
    for (int i = 0; i < kUnits * 8; ++i) {
      float& value = all_values[i / 8][i / 4 % 2][i % 4];
      value = merged(by[i % 4 / 2], value, right(i / 8, i / 4 % 2, i % 4));
    }
    all_sum = merged(threadIdx.x < 32 ? by[0] : by[1], all_sum, right_sum);
    all_top[0] = by[0].top;
    all_top[1] = by[1].top;
  }
};

// One block's way through the tiles of its item.
template <bool kBf16Keys, bool kBf16Values, int kSlots, int kUnits>
struct GeneralBlock {
  using Ring = PieceRing<kSlots, !kBf16Values>;

  const PagedAttention& job;
  const GeneralShape& shape;
  const AttentionItem& item;
  const QueryTile& rows;
  KeyMask mask;
  float scale;  // of scores, times log2 e
  float slope;  // of the soft cap
  GeneralShared& shared;
  std::byte* queries;
  GeneralSums<kUnits> sums = {};
  bool waited = false;

  __device__ __forceinline__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ __forceinline__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  // The largest visible score of row r among this warp's keys, in all lanes of a quad.
  __device__ __forceinline__ float best_of(int r, int key, const float (&score)[4]) const {
    float best = kNothing;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (mask.sees(r, key + i)) best = fmaxf(best, score[2 * r + i]);
    }
    best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
    return fmaxf(best, __shfl_xor_sync(~0u, best, 2));
  }

  // Turns the scores of a tile into weights, which stand in shared memory after the next barrier;
  // returns in `shrink` what rescales the sums so far.
  __device__ __forceinline__ void weigh(int tile, float (&score)[4], float (&shrink)[2]) {
    const int base = tile * kGeneralTile;
    const int own = warp() * 8 + lane() % 4 * 2;  // the first of this lane's two keys
    if (job.cap > 0) {
      for (float& value : score) value = soft_cap_of<DeviceMath>(value, slope, job.cap);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float best = best_of(r, base + own, score);
      if (lane() % 4 == 0) shared.best[warp()][lane() / 4 + 8 * r] = best;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = lane() / 4 + 8 * r;
      float best = kNothing;
#pragma unroll
      for (int w = 0; w < kGeneralWarps; ++w) best = fmaxf(best, shared.best[w][row]);
      best = mask.sees_any(r, base) ? fmaxf(best, kLowest) : kNothing;
      const float before = sums.top[r];
      sums.top[r] = fmaxf(before, best * scale);
      const float from = weighed_from(sums.top[r]);
      shrink[r] = ex2_approx(before - from);
      float weight[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const bool seen = mask.sees(r, base + own + i);
        weight[i] = seen ? ex2_approx(__fmaf_rn(score[2 * r + i], scale, -from)) : 0.0f;
      }
      *reinterpret_cast<float2*>(&shared.exact_weights[row][own]) =
          make_float2(weight[0], weight[1]);
      *reinterpret_cast<std::uint32_t*>(&shared.weights[row][own]) =
          kBf16Values ? pack_bf16(weight[0], weight[1]) : pack_fp16(weight[0], weight[1]);
    }
  }

  // Adds the weights of a tile: lane t adds those of keys 8j + 2t and the next, in order.
  __device__ __forceinline__ void add_weights(const float (&shrink)[2]) {
    if (warp() >= 2) return;
    const float* const row = shared.exact_weights[lane() / 4 + 8 * warp()];
    float added = 0;
#pragma unroll
    for (int j = 0; j < kGeneralTile / 8; ++j) {
      const float2 pair = *reinterpret_cast<const float2*>(row + 8 * j + lane() % 4 * 2);
      added += pair.x;
      added += pair.y;
    }
    sums.lane = __fmaf_rn(sums.lane, warp() == 0 ? shrink[0] : shrink[1], added);
  }

  __device__ __forceinline__ void add_values(const std::byte* values, const float (&shrink)[2]) {
    std::uint32_t a[kGeneralTile / 16][4];
#pragma unroll
    for (int p = 0; p < kGeneralTile / 16; ++p) {
      ldmatrix_x4(a[p], left_address(shared.weights, sizeof shared.weights[0], p));
    }
    const std::uint32_t right =
        smem_address(values) + lane() % 16 * shape.value_row_bytes + lane() / 16 * 16;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int unit = warp() + u * kGeneralWarps;
      if (unit >= shape.value_units) break;
      float tile[2][4] = {};
#pragma unroll
      for (int p = 0; p < kGeneralTile / 16; ++p) {
        std::uint32_t b[4];  // by half, by 8 keys
        ldmatrix_x4_trans(b, right + 16 * p * shape.value_row_bytes + unit * 32);
        general_multiply<kBf16Values>(tile[0], a[p], b[0], b[1]);
        general_multiply<kBf16Values>(tile[1], a[p], b[2], b[3]);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float& sum = sums.values[u][i / 4][i % 4];
        sum = __fmaf_rn(sum, shrink[i % 4 / 2], tile[i / 4][i % 4]);
      }
    }
  }

  // Attends to splits [first_split, last_split) of a part of the keys.
  __device__ __forceinline__ void attend(KeyPart part, std::uint32_t first_split,
                                         std::uint32_t last_split) {
    mask = rows.mask(item, part);
    constexpr int kSplitTiles = static_cast<int>(kSplitKeys) / kGeneralTile;
    const int first = max(static_cast<int>(first_split) * kSplitTiles, mask.first / kGeneralTile);
    const int last = min(static_cast<int>(last_split) * kSplitTiles - 1, mask.last / kGeneralTile);
    Ring ring(queries + shape.query_bytes, job, shape, rows, mask, first, last - first + 1);
    // Keys of earlier steps can be copied at once; the launch before this one writes this step's.
    const bool early =
        waited || ring.last_key_of_first() < static_cast<int>(rows.sequence.first_position);
    if (early) ring.start();
    if (!waited) pdl_wait();
    waited = true;
    if (!early) ring.start();
    // Seen after the ring's first barrier.
    const std::uint16_t* const from = part == KeyPart::kSinks ? job.sink_query : job.query;
    load_general_queries(job, from, shape, rows, item, queries);
    run(ring, first, last, static_cast<int>(first_split));
    cp_async_wait<0>();
    __syncthreads();
  }

  __device__ __forceinline__ void run(Ring& ring, int first, int last, int first_split) {
    for (int tile = first; tile <= last; ++tile) {
      const std::byte* const keys = ring.take();
      float score[4];
      score_keys<kBf16Keys>(shape, queries, keys, score);
      float shrink[2];
      weigh(tile, score, shrink);
      const std::byte* values = keys;
      if (shape.latent) {
        __syncthreads();
      } else {
        values = ring.take();
      }
      add_weights(shrink);
      add_values(values, shrink);
      constexpr int kSplitTiles = static_cast<int>(kSplitKeys) / kGeneralTile;
      if (tile % kSplitTiles != kSplitTiles - 1 && tile != last) continue;
      end_split(tile / kSplitTiles - first_split);
    }
  }

  __device__ __forceinline__ void end_split(int split) {
    const float sum = warp() < 2 ? sums.split_sum() : 0.0f;
    if (item.partial == kWhole) {
      sums.merge(sums.top, sum, [&](int u, int h, int i) { return sums.values[u][h][i]; });
    } else {
      store_partial(split, sum);
    }
    sums.clear_split();
  }

  __device__ __forceinline__ void store_partial(int split, float sum) const {
    const kv::memory::PageLayout& layout = job.pages.layout;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t row = lane() / 4 + 8 * r;
      if (row >= rows.count) continue;
      const std::size_t partial = item.partial + (std::size_t{rows.kv_head} * rows.count + row) +
                                  std::size_t{layout.kv_heads} * rows.count * split;
      float* const to = job.partials + partial * partial_floats(layout.value_dim);
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        const int unit = warp() + u * kGeneralWarps;
        if (unit >= shape.value_units) break;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float* const pair = &sums.values[u][h][2 * r];
          *reinterpret_cast<float2*>(to + unit * 16 + h * 8 + lane() % 4 * 2) =
              make_float2(pair[0], pair[1]);
        }
      }
      if (warp() == r && lane() % 4 == 0) {
        *reinterpret_cast<float2*>(to + layout.value_dim) = make_float2(sums.top[r], sum);
      }
    }
  }

  // Merges the sinks and stores the results.
  __device__ __forceinline__ void finish() {
    if (job.sinks != nullptr) {
      float top[2];
      for (int r = 0; r < 2; ++r) {
        const std::uint32_t head = rows.kv_head * rows.group + rows.row[r].head;
        top[r] = rows.row[r].there ? job.sinks[head] * kLog2E : kNothing;
      }
      sums.merge(top, 1.0f, [](int, int, int) { return 0.0f; });
    }
    if (warp() < 2 && lane() % 4 == 0) shared.sums[lane() / 4 + 8 * warp()] = sums.all_sum;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t row = lane() / 4 + 8 * r;
      if (row >= rows.count) continue;
      const ResultRow to(job, rows.sequence.first_row + rows.row[r].token,
                         rows.kv_head * rows.group + rows.row[r].head);
      const float sum = shared.sums[row];
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        const int unit = warp() + u * kGeneralWarps;
        if (unit >= shape.value_units) break;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float* const pair = &sums.all_values[u][h][2 * r];
          to.store(unit * 16 + h * 8 + lane() % 4 * 2, __fdiv_rn(pair[0], sum),
                   __fdiv_rn(pair[1], sum));
        }
      }
      for (std::uint32_t i = warp() * 4 + lane() % 4; i < to.padding(); i += kGeneralWarps * 4) {
        *to.at(job.pages.layout.value_dim + i) = 0;
      }
    }
  }
};

template <bool kBf16Keys, bool kBf16Values, int kSlots, int kUnits>
__global__ void __launch_bounds__(kGeneralThreads, kUnits <= 2 ? 2 : 1)
    general_attention(PagedAttention job, GeneralShape shape, float slope) {
  extern __shared__ __align__(16) std::byte raw[];
  auto& shared = *reinterpret_cast<GeneralShared*>(raw);
  pdl_trigger();
  if (blockIdx.x >= *job.item_count) return pdl_wait();
  const AttentionItem item = job.items[blockIdx.x];
  const QueryTile rows(job, item);
  GeneralBlock<kBf16Keys, kBf16Values, kSlots, kUnits> block = {
      .job = job,
      .shape = shape,
      .item = item,
      .rows = rows,
      .mask = {},
      .scale = (job.cap > 0 ? 1.0f : job.scale) * kLog2E,
      .slope = slope,
      .shared = shared,
      .queries = raw + sizeof(GeneralShared)};
  const bool whole = item.partial == kWhole;
  KeyPart part = item.sinks != 0 ? KeyPart::kSinks : KeyPart::kWindow;
  std::uint32_t first = item.first_split;
  std::uint32_t last = item.last_split;
#pragma unroll 1
  for (;;) {
    block.attend(part, first, last);
    if (!whole || part == KeyPart::kSinks || !rows.has_gap(item)) break;
    part = KeyPart::kSinks;
    first = 0;
    last = rows.seen.sink_splits();
  }
  if (whole) block.finish();
}

}  // namespace pagoda::kernels::cuda

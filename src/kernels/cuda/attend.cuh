// Attention over pages: one warp takes one query tile (16 query rows of one KV head) through its
// splits. Prefill and decode are the same kernel with more or fewer tiles.
//
// Keys and values go from the cache to registers without shared memory: dimensions and keys are
// dealt to the tensor core's lanes in the order in which loads bring them. Of a step of 16
// dimensions lane t of a quad holds 4t to 4t + 3 of queries and keys; of 64 value dimensions lane
// group g holds 8g to 8g + 7, and pairs of keys are interleaved by byte permutes.
#pragma once

#include "kernels/cuda/attention_state.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/tensor_core.cuh"

namespace pagoda::kernels::cuda {

inline constexpr std::uint32_t kAttendWarps = 4;

template <bool kBrain>
__device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
  if constexpr (kBrain) {
    multiply_bf16(c, a, b0, b1);
  } else {
    multiply_fp16(c, a, b0, b1);
  }
}

template <bool kBrain>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  return kBrain ? pack_bf16(low, high) : pack_fp16(low, high);
}

// The visible keys of a tile's rows. Positions are below 2^31.
struct TileReach {
  int position[2];  // of the thread's two rows; -1: no such row
  int first;        // key that any row sees
  int last;
  int window;

  __device__ __forceinline__ bool sees(int row, int key) const {
    return key <= position[row] && (window == 0 || key + window > position[row]);
  }
  __device__ __forceinline__ bool loads(int key) const { return key >= first && key <= last; }
};

template <int kDim>
struct AttentionSums {
  float values[kDim / 8][4];
  float top[2];
  float sum[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (auto& fragment : values) {
      for (float& value : fragment) value = 0;
    }
    for (int r = 0; r < 2; ++r) {
      top[r] = kNothing;
      sum[r] = 0;
    }
  }
};

// Where the rows of 16 keys from `key` on are: a block has a multiple of 16 tokens.
struct KeyRows {
  const std::uint16_t* keys;
  const std::uint16_t* values;
};

template <int kDim>
struct TileWalk {
  const Attend& job;
  const std::uint32_t* table;
  TileReach reach;
  std::uint32_t block_shift;
  std::size_t page_bytes;
  std::size_t key_offset;  // of this layer and head within a page
  std::size_t value_offset;

  __device__ __forceinline__ KeyRows rows_at(int key) const {
    const int known = min(max(key, reach.first), reach.last);  // what the table really names
    const std::uint32_t page = table[static_cast<std::uint32_t>(known) >> block_shift];
    const std::byte* const data = job.pages.data + page * page_bytes;
    const std::uint32_t token = static_cast<std::uint32_t>(key) & ((1u << block_shift) - 1);
    return {reinterpret_cast<const std::uint16_t*>(data + key_offset) + token * kDim,
            reinterpret_cast<const std::uint16_t*>(data + value_offset) + token * kDim};
  }
  __device__ __forceinline__ void rows_of_tile(int base, KeyRows (&rows)[kTileKeys / 16]) const {
#pragma unroll
    for (int i = 0; i < static_cast<int>(kTileKeys) / 16; ++i) rows[i] = rows_at(base + 16 * i);
  }
};

__device__ __forceinline__ uint4 load16(const std::uint16_t* from, bool there) {
  return there ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
}

// This lane's four dimensions of each of two steps.
__device__ __forceinline__ uint4 load_steps(const std::uint16_t* from, bool there) {
  if (!there) return make_uint4(0, 0, 0, 0);
  const uint2 even = *reinterpret_cast<const uint2*>(from);
  const uint2 odd = *reinterpret_cast<const uint2*>(from + 16);
  return make_uint4(even.x, even.y, odd.x, odd.y);
}

// Scores of kTileKeys keys from `base` on, [key / 8][fragment].
template <int kDim, bool kBrain>
__device__ __forceinline__ void score_tile(const TileWalk<kDim>& walk,
                                           const uint4 (&query)[2][kDim / 32], int base,
                                           const KeyRows (&rows)[kTileKeys / 16],
                                           float (&score)[kTileKeys / 8][4]) {
  const int low = threadIdx.x % 32 / 4;
  const int quad = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < static_cast<int>(kTileKeys) / 8; ++j) {
    const bool there = walk.reach.loads(base + 8 * j + low);
    const std::uint16_t* const row = rows[j / 2].keys + (j % 2 * 8 + low) * kDim + 4 * quad;
    for (float& value : score[j]) value = 0;
#pragma unroll
    for (int b = 0; b < kDim / 32; ++b) {
      const uint4 key = load_steps(row + 32 * b, there);
      const uint4& q0 = query[0][b];
      const uint4& q1 = query[1][b];
      multiply<kBrain>(score[j], {q0.x, q1.x, q0.y, q1.y}, key.x, key.y);
      multiply<kBrain>(score[j], {q0.z, q1.z, q0.w, q1.w}, key.z, key.w);
    }
  }
}

// The largest visible score of the thread's row r, of a tile of keys, in all lanes of a quad.
__device__ __forceinline__ float best_score(const TileReach& reach, int r, int base,
                                            const float (&score)[kTileKeys / 8][4]) {
  float best = kNothing;
#pragma unroll
  for (int j = 0; j < static_cast<int>(kTileKeys) / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool seen = reach.sees(r, base + 8 * j + 2 * (threadIdx.x % 4) + i);
      if (seen) best = fmaxf(best, score[j][2 * r + i]);
    }
  }
  best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
  return fmaxf(best, __shfl_xor_sync(~0u, best, 2));
}

// What weights are measured from: a row that has seen no key has nothing to weigh.
__device__ __forceinline__ float weighed_from(float top) { return top == kNothing ? 0.0f : top; }

// Scores of row r to weights; their sum in this lane.
__device__ __forceinline__ float weigh(const TileReach& reach, int r, int base, float scale,
                                       float top, float (&score)[kTileKeys / 8][4]) {
  const float from = weighed_from(top);
  float added = 0;
#pragma unroll
  for (int j = 0; j < static_cast<int>(kTileKeys) / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float& value = score[j][2 * r + i];
      const bool seen = reach.sees(r, base + 8 * j + 2 * (threadIdx.x % 4) + i);
      value = seen ? exp2_fast(__fmaf_rn(value, scale, -from)) : 0.0f;
      added += value;
    }
  }
  return added;
}

// Weights as the left side of a product, step by step of 16 keys.
struct TileWeights {
  std::uint32_t a[kTileKeys / 16][4];
};
template <bool kBrain>
__device__ __forceinline__ TileWeights packed_weights(const float (&weight)[kTileKeys / 8][4]) {
  TileWeights packed;
#pragma unroll
  for (int k = 0; k < static_cast<int>(kTileKeys) / 16; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&pair)[4] = weight[2 * k + i / 2];
      packed.a[k][i] = pack<kBrain>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
    }
  }
  return packed;
}

// Weighted values of a tile of keys, 64 dimensions from 64 * h on, from 0.
template <int kDim, bool kBrain>
__device__ __forceinline__ void weighted_values(const TileWalk<kDim>& walk, int base, int h,
                                                const KeyRows (&rows)[kTileKeys / 16],
                                                const TileWeights& weights, float (&values)[8][4]) {
  const int low = threadIdx.x % 32 / 4;
  const int quad = threadIdx.x % 4;
#pragma unroll
  for (auto& fragment : values) {
    for (float& value : fragment) value = 0;
  }
#pragma unroll
  for (int k = 0; k < static_cast<int>(kTileKeys) / 16; ++k) {
    std::uint32_t v[4][4];  // keys 2t, 2t + 1, 2t + 8, 2t + 9; dimensions by pairs
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = 2 * quad + i % 2 + 8 * (i / 2);
      const uint4 loaded = load16(rows[k].values + key * kDim + 64 * h + 8 * low,
                                  walk.reach.loads(base + 16 * k + key));
      v[i][0] = loaded.x;
      v[i][1] = loaded.y;
      v[i][2] = loaded.z;
      v[i][3] = loaded.w;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const std::uint32_t half = j % 2 == 0 ? 0x5410u : 0x7632u;
      multiply<kBrain>(values[j], weights.a[k], __byte_perm(v[0][j / 2], v[1][j / 2], half),
                       __byte_perm(v[2][j / 2], v[3][j / 2], half));
    }
  }
}

// One split, from nothing: the partial result of its visible keys.
template <int kDim, bool kBrain>
__device__ __forceinline__ void attend_split(const TileWalk<kDim>& walk,
                                             const uint4 (&query)[2][kDim / 32], float scale,
                                             int split, AttentionSums<kDim>& sums) {
  sums.clear();
  constexpr int kKeys = kTileKeys;
  const int begin = max(split * static_cast<int>(kSplitKeys), walk.reach.first) / kKeys * kKeys;
  const int end = min((split + 1) * static_cast<int>(kSplitKeys), walk.reach.last + 1);
  for (int base = begin; base < end; base += kKeys) {
    KeyRows rows[kTileKeys / 16];
    walk.rows_of_tile(base, rows);
    float score[kTileKeys / 8][4];
    score_tile<kDim, kBrain>(walk, query, base, rows, score);
    float shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float top = fmaxf(sums.top[r], best_score(walk.reach, r, base, score) * scale);
      shrink[r] = exp2_fast(sums.top[r] - weighed_from(top));
      sums.sum[r] =
          __fmaf_rn(sums.sum[r], shrink[r], weigh(walk.reach, r, base, scale, top, score));
      sums.top[r] = top;
    }
    const TileWeights weights = packed_weights<kBrain>(score);
#pragma unroll
    for (int h = 0; h < kDim / 64; ++h) {
      float values[8][4];
      weighted_values<kDim, kBrain>(walk, base, h, rows, weights, values);
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        float& sum = sums.values[8 * h + i / 4][i % 4];
        sum = __fmaf_rn(sum, shrink[i % 4 / 2], values[i / 4][i % 4]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sums.sum[r] += __shfl_xor_sync(~0u, sums.sum[r], 1);
    sums.sum[r] += __shfl_xor_sync(~0u, sums.sum[r], 2);
  }
}

// The sums of a thread's row r: of 64 dimensions it has 16, from 16 * quad on.
template <int kDim>
__device__ __forceinline__ void store_partial(const AttentionSums<kDim>& sums, int r, float* to) {
  const int quad = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < kDim / 4; ++i) {
    to[i / 16 * 64 + 16 * quad + i % 16] = sums.values[i / 16 * 8 + i % 8][2 * r + i % 16 / 8];
  }
  if (quad == 0) {
    to[kDim] = sums.top[r];
    to[kDim + 1] = sums.sum[r];
  }
}

// What a warp needs to know of its tile.
struct TileRows {
  SequencePlace sequence;
  std::uint32_t kv_head;
  std::uint32_t group;
  QueryRow row[2];  // the thread's

  // Index of a query head's row in [rows, heads].
  __device__ __forceinline__ std::size_t head_of(const Attend& job, int r) const {
    return std::size_t{sequence.first_row + row[r].token} * job.heads + kv_head * group +
           row[r].head;
  }
};

template <int kDim>
__device__ __forceinline__ TileWalk<kDim> walk_of(const Attend& job, const AttentionItem& item,
                                                  const TileRows& rows) {
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t first_token = item.tile * kQueryRows / rows.group;
  const std::uint32_t last_token =
      min(rows.sequence.rows - 1, (item.tile * kQueryRows + kQueryRows - 1) / rows.group);
  const int begin = static_cast<int>(rows.sequence.first_position);
  const int earliest = begin + static_cast<int>(first_token);
  const int window = static_cast<int>(job.window);
  const auto position = [&](int r) {
    return rows.row[r].there ? begin + static_cast<int>(rows.row[r].token) : -1;
  };
  return {
      .job = job,
      .table = job.pages.tables + rows.sequence.table,
      .reach = {.position = {position(0), position(1)},
                .first = window != 0 && earliest + 1 > window ? earliest + 1 - window : 0,
                .last = begin + static_cast<int>(last_token),
                .window = window},
      .block_shift = 31u - static_cast<std::uint32_t>(__clz(static_cast<int>(layout.block_tokens))),
      .page_bytes = layout.page_bytes(),
      .key_offset = layout.key_offset(job.pages.layer, rows.kv_head, 0),
      .value_offset = layout.value_offset(job.pages.layer, rows.kv_head, 0)};
}

// The sums of all splits so far. Values are in shared memory, [value][lane]: registers hold those
// of one split, and both would not fit.
template <int kDim>
struct AttentionTotals {
  float* values;
  float top[2];
  float sum[2];

  __device__ __forceinline__ float& value(int r, int i) const {
    return values[(r * (kDim / 4) + i) * 32];
  }
  __device__ __forceinline__ void add(const AttentionSums<kDim>& split) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const MergeFactors by = merge_factors(top[r], split.top[r]);
#pragma unroll
      for (int i = 0; i < kDim / 4; ++i) {
        float& total = value(r, i);
        total = merged(by, top[r] == kNothing ? 0.0f : total, split.values[i / 2][2 * r + i % 2]);
      }
      sum[r] = merged(by, sum[r], split.sum[r]);
      top[r] = by.top;
    }
  }
  // Eight dimensions at a time, 16 bytes of the operand.
  __device__ __forceinline__ void store(const Attend& job, const TileRows& rows) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (!rows.row[r].there) continue;
      const std::uint32_t column =
          (rows.kv_head * rows.group + rows.row[r].head) * kDim + threadIdx.x % 4 * 16;
#pragma unroll
      for (int part = 0; part < kDim / 32; ++part) {
        std::uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int first = (8 * (part / 2) + 2 * i) * 2 + part % 2;
          words[i] =
              pack_bf16(__fdiv_rn(value(r, first), sum[r]), __fdiv_rn(value(r, first + 2), sum[r]));
        }
        Bf16* const to =
            job.operand + operand_place(rows.sequence.first_row + rows.row[r].token,
                                        column + part / 2 * 64 + part % 2 * 8, job.rows);
        *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }
};

__device__ __forceinline__ TileRows rows_of_item(const Attend& job, const AttentionItem& item) {
  TileRows rows = {.sequence = job.sequences[item.sequence],
                   .kv_head = blockIdx.y,
                   .group = job.heads / job.pages.layout.kv_heads,
                   .row = {}};
  for (int r = 0; r < 2; ++r) {
    rows.row[r] =
        query_row(item.tile, threadIdx.x % 32 / 4 + 8 * r, rows.group, rows.sequence.rows);
  }
  return rows;
}

template <int kDim>
__device__ __forceinline__ void load_query(const Attend& job, const TileRows& rows,
                                           uint4 (&query)[2][kDim / 32]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int b = 0; b < kDim / 32; ++b) {
      query[r][b] =
          load_steps(job.query + rows.head_of(job, r) * kDim + 32 * b + threadIdx.x % 4 * 4,
                     rows.row[r].there);
    }
  }
}

template <int kDim, bool kBrain>
__global__ void __launch_bounds__(kAttendWarps * 32) attend(Attend job) {
  extern __shared__ float shared[];  // [warp] totals
  let_next_launch_begin();
  wait_for_launch_before();
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t index = blockIdx.x * kAttendWarps + warp;
  if (index >= *job.item_count) return;
  const AttentionItem item = job.items[index];
  const TileRows rows = rows_of_item(job, item);
  const TileWalk<kDim> walk = walk_of<kDim>(job, item, rows);
  uint4 query[2][kDim / 32];
  load_query<kDim>(job, rows, query);
  const float scale = job.scale * kLog2E;
  AttentionSums<kDim> sums;
  AttentionTotals<kDim> totals = {.values = shared + warp * (kDim / 2) * 32 + threadIdx.x % 32,
                                  .top = {kNothing, kNothing},
                                  .sum = {0, 0}};
  for (std::uint32_t split = item.first_split; split < item.last_split; ++split) {
    attend_split<kDim, kBrain>(walk, query, scale, static_cast<int>(split), sums);
    if (item.partial == kWhole) totals.add(sums);
  }
  if (item.partial == kWhole) return totals.store(job, rows);
  const std::uint32_t tile_rows = rows_of_tile(item.tile, rows.group, rows.sequence.rows);
  const std::size_t first = std::size_t{item.partial} + rows.kv_head * tile_rows;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const std::uint32_t place = threadIdx.x % 32 / 4 + 8 * r;
    if (place < tile_rows) store_partial(sums, r, job.partials + (first + place) * (kDim + 2));
  }
}

template <int kDim, bool kBrain>
void launch_attend_of(const Attend& job, cudaStream_t stream) {
  const std::uint32_t blocks = (job.items_max + kAttendWarps - 1) / kAttendWarps;
  launch_kernel(attend<kDim, kBrain>, dim3(blocks, job.pages.layout.kv_heads), kAttendWarps * 32,
                kAttendWarps * (kDim / 2) * 32 * sizeof(float), stream, job);
}

template <int kDim, bool kBrain>
cudaError_t prepare_attend_of() {
  return cudaFuncSetAttribute(attend<kDim, kBrain>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              kAttendWarps * (kDim / 2) * 32 * sizeof(float));
}

}  // namespace pagoda::kernels::cuda

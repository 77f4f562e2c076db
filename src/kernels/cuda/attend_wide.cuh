// Attention of many query rows, on warpgroups: bound by the tensor cores. The same bits as
// attend.cuh.
//
// A block takes wide tiles of query rows of one KV head, (token, head) pairs packed together, one
// after the other, each through all keys that any of its rows sees. One warpgroup copies tiles of
// kTileKeys keys and values into two rings; two multiply, each with 64 query rows, or, where heads
// have 256 dimensions, with the same rows and half of the value dimensions.
#pragma once

#include <algorithm>

#include "kernels/cuda/attention_state.cuh"
#include "kernels/cuda/wide_tiles.cuh"

namespace pagoda::kernels::cuda {

// A thread's two query rows.
struct WideRows {
  int position[2];  // -1: no such row
  int earliest;     // of the warpgroup's rows
  int latest;
  int window;

  __device__ __forceinline__ bool sees(int r, int key) const {
    return key <= position[r] && (window == 0 || key + window > position[r]);
  }
  // Of a tile of keys.
  __device__ __forceinline__ bool sees_any(int r, int base) const {
    return base <= position[r] && (window == 0 || base + int{kTileKeys} - 1 + window > position[r]);
  }
  __device__ __forceinline__ bool all_see(int base) const {
    return base + int{kTileKeys} - 1 <= earliest && (window == 0 || base + window > latest);
  }
};

// A softmax over the keys of a split so far; a lane of a quad has its part of the sum.
struct WideSoftmax {
  float top[2];
  float sum[2];
  float shrink[2];  // what the last tile did to all before it

  __device__ __forceinline__ void clear() {
    top[0] = top[1] = kNothing;
    sum[0] = sum[1] = 0;
  }
  // Scores of a tile to weights.
  template <bool kMasked>
  __device__ __forceinline__ void add(const WideRows& rows, int tile, float scale,
                                      float (&score)[8][4]) {
    const int base = tile + 2 * (threadIdx.x % 4);  // the thread's first key
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float least = !kMasked || rows.sees_any(r, tile) ? kLowest : kNothing;
      float bests[4] = {least, least, least, least};
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        if (kMasked && !rows.sees(r, base + i / 2 * 8 + i % 2)) continue;
        bests[i % 4] = fmaxf(bests[i % 4], score[i / 2][2 * r + i % 2]);
      }
      float best = fmaxf(fmaxf(bests[0], bests[1]), fmaxf(bests[2], bests[3]));
      best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
      best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
      const float before = top[r];
      top[r] = fmaxf(before, best * scale);
      const float from = top[r] == kNothing ? 0.0f : top[r];
      shrink[r] = exp2_fast(before - from);
      float added = 0;
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        float& value = score[i / 2][2 * r + i % 2];
        const bool seen = !kMasked || rows.sees(r, base + i / 2 * 8 + i % 2);
        value = seen ? exp2_fast(__fmaf_rn(value, scale, -from)) : 0.0f;
        added += value;
      }
      sum[r] = __fmaf_rn(sum[r], shrink[r], added);
    }
  }
  __device__ __forceinline__ float quad_sum(int r) const {
    const float pair = sum[r] + __shfl_xor_sync(~0u, sum[r], 1);
    return pair + __shfl_xor_sync(~0u, pair, 2);
  }
};

template <bool kBrain>
__device__ __forceinline__ void pack_weights(const float (&weight)[8][4],
                                             std::uint32_t (&packed)[4][4]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const float(&pair)[4] = weight[i / 4 * 2 + i % 4 / 2];
    packed[i / 4][i % 4] = kBrain ? pack_bf16(pair[i % 2 * 2], pair[i % 2 * 2 + 1])
                                  : pack_fp16(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
  }
}

// The sums of all splits before the present one. Values are in shared memory: registers hold those
// of a split and of a tile, and three would not fit.
template <int kOut>
struct WideTotals {
  float4 (&values)[kOut / 8][128];
  float top[2];
  float sum[2];

  // Adds a split; store(j, values) gets the sums of four values.
  template <class Store>
  __device__ __forceinline__ void add(const float (&split)[kOut / 8][4],
                                      const float (&split_top)[2], const float (&split_sum)[2],
                                      Store&& store) {
    const bool any[2] = {top[0] != kNothing, top[1] != kNothing};
    const MergeFactors by[2] = {merge_factors(top[0], split_top[0]),
                                merge_factors(top[1], split_top[1])};
    for (int r = 0; r < 2; ++r) {
      sum[r] = merged(by[r], sum[r], split_sum[r]);
      top[r] = by[r].top;
    }
    // merged() without its cases, where no row of the warp has one.
    const bool plain = by[0].left >= 0 && by[0].right >= 0 && by[1].left >= 0 && by[1].right >= 0;
    const std::uint32_t thread = threadIdx.x % 128;
    if (__all_sync(~0u, plain)) {
#pragma unroll
      for (int j = 0; j < kOut / 8; ++j) {
        const float4 left = values[j][thread];
        store(j, float4{__fmaf_rn(left.x, by[0].left, split[j][0] * by[0].right),
                        __fmaf_rn(left.y, by[0].left, split[j][1] * by[0].right),
                        __fmaf_rn(left.z, by[1].left, split[j][2] * by[1].right),
                        __fmaf_rn(left.w, by[1].left, split[j][3] * by[1].right)});
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < kOut / 8; ++j) {
      float4 left = values[j][thread];
      if (!any[0]) left.x = left.y = 0;
      if (!any[1]) left.z = left.w = 0;
      store(j, float4{merged(by[0], left.x, split[j][0]), merged(by[0], left.y, split[j][1]),
                      merged(by[1], left.z, split[j][2]), merged(by[1], left.w, split[j][3])});
    }
  }
};

// A warpgroup: the products and the softmax of its rows.
template <int kDim, bool kBrain>
struct WideWorker {
  using Shape = WideShape<kDim>;
  static constexpr int kOut = Shape::kOut;

  WideRows rows;
  float scale;
  std::uint64_t query;          // side of a product
  std::uint32_t values_offset;  // of the first block of value dimensions in a tile
  WideSoftmax softmax;
  float sums[kOut / 8][4];    // of the split
  float values[kOut / 8][4];  // of a tile
  float score[8][4];
  std::uint32_t weights[4][4];

  __device__ __forceinline__ void begin_scores(std::uint32_t tile) {
    const std::uint64_t key = swizzled_side(tile);
    begin_products();
    multiply_scores<kBrain, 0>(score, query, key);
#pragma unroll
    for (int s = 1; s < kDim / 16; ++s) {
      const int at = (s / 4 * 8192 + s % 4 * 32) >> 4;
      multiply_scores<kBrain, 1>(score, query + at, key + at);
    }
    commit_products();
  }
  __device__ __forceinline__ void begin_values(std::uint32_t tile) {
    const std::uint64_t value = swizzled_side(tile + values_offset);
    begin_products();
    multiply_values<kBrain, 0>(values, weights[0], value);
#pragma unroll
    for (int k = 1; k < int{kTileKeys} / 16; ++k) {
      multiply_values<kBrain, 1>(values, weights[k], value + (k * 2048 >> 4));
    }
    commit_products();
  }
  __device__ __forceinline__ void weigh(int base) {
    if (rows.all_see(base)) {
      softmax.add<false>(rows, base, scale, score);
    } else {
      softmax.add<true>(rows, base, scale, score);
    }
  }
  // The tile's values, to those of the split; it is the split's first or not.
  __device__ __forceinline__ void add_values(bool first, const float (&shrink)[2]) {
    if (first) {
#pragma unroll
      for (int i = 0; i < kOut / 2; ++i) sums[i / 4][i % 4] = values[i / 4][i % 4] + 0.0f;
    } else {
#pragma unroll
      for (int i = 0; i < kOut / 2; ++i) {
        float& sum = sums[i / 4][i % 4];
        sum = __fmaf_rn(sum, shrink[i % 4 / 2], values[i / 4][i % 4]);
      }
    }
  }
};

// Which of the two warpgroups that multiply; the same in a warp, and known to be.
__device__ __forceinline__ std::uint32_t wide_worker() {
  return __shfl_sync(~0u, threadIdx.x / 128, 0) - 1;
}

// The thread's query row r of 2.
template <int kDim>
__device__ __forceinline__ QueryRow wide_row(const WideItem& item, int r) {
  constexpr std::uint32_t kSharers = WideShape<kDim>::kSharers;
  const std::uint32_t worker = kSharers == 1 ? wide_worker() : 0;
  const std::uint32_t index =
      item.first_row + worker * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + 8 * r;
  const std::uint32_t token = index / item.group;
  return {token, index - token * item.group, token < item.sequence.rows};
}

template <int kDim>
__device__ __forceinline__ WideRows wide_rows_of(const Attend& job, const WideItem& item) {
  const std::uint32_t worker = WideShape<kDim>::kSharers == 1 ? wide_worker() : 0;
  const std::uint32_t first = item.first_row + worker * 64;
  const int begin = static_cast<int>(item.sequence.first_position);
  WideRows rows = {.position = {},
                   .earliest = begin + static_cast<int>(first / item.group),
                   .latest = begin + static_cast<int>((first + 63) / item.group),
                   .window = static_cast<int>(job.window)};
  for (int r = 0; r < 2; ++r) {
    const QueryRow row = wide_row<kDim>(item, r);
    rows.position[r] = row.there ? begin + static_cast<int>(row.token) : -1;
  }
  return rows;
}

// Queries to shared memory, by the warpgroups that have the same rows.
template <int kDim>
__device__ __forceinline__ void load_wide_queries(const Attend& job, const WideItem& item,
                                                  WideShared<kDim>& shared) {
  constexpr std::uint32_t kPieces = kDim / 8;
  constexpr std::uint32_t kSharers = WideShape<kDim>::kSharers;
  const std::uint32_t own = kSharers == 1 ? wide_worker() : 0;
  meet(1 + own, kSharers * 128);
  for (std::uint32_t i = threadIdx.x % (kSharers * 128); i < 64 * kPieces; i += kSharers * 128) {
    const std::uint32_t r = i / kPieces;
    const std::uint32_t piece = i % kPieces;
    const std::uint32_t index = item.first_row + own * 64 + r;
    const std::uint32_t token = index / item.group;
    const std::size_t row = std::size_t{item.sequence.first_row + token} * job.heads +
                            item.kv_head * item.group + index - token * item.group;
    copy_chunk(shared_address(shared.queries[own][piece / 8]) + swizzled(r, piece % 8),
               job.query + row * kDim + piece * 8, token < item.sequence.rows ? 16 : 0);
  }
  commit_copies();
  wait_copies<0>();
  show_to_products();
  meet(1 + own, kSharers * 128);
}

template <int kDim, bool kBrain>
__device__ __forceinline__ void finish_wide(const Attend& job, const WideItem& item,
                                            const WideWorker<kDim, kBrain>& worker,
                                            WideTotals<WideShape<kDim>::kOut>& totals) {
  std::uint32_t* to[2];
  bool there[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const QueryRow row = wide_row<kDim>(item, r);
    const std::uint32_t column = (item.kv_head * item.group + row.head) * kDim +
                                 worker.values_offset / kBlockRowBytes + threadIdx.x % 4 * 2;
    there[r] = row.there;
    to[r] = reinterpret_cast<std::uint32_t*>(
        job.operand + operand_place(item.sequence.first_row + row.token, column, job.rows));
  }
  const std::size_t next_chunk = operand_values(job.rows, kChunkColumns) / 2;
  const float split_sum[2] = {worker.softmax.quad_sum(0), worker.softmax.quad_sum(1)};
  totals.add(worker.sums, worker.softmax.top, split_sum, [&](int j, const float4& all) {
    const std::size_t at = j / 8 * next_chunk + j % 8 * 32;
    if (there[0]) {
      to[0][at] = pack_bf16(__fdiv_rn(all.x, totals.sum[0]), __fdiv_rn(all.y, totals.sum[0]));
    }
    if (there[1]) {
      to[1][at] = pack_bf16(__fdiv_rn(all.z, totals.sum[1]), __fdiv_rn(all.w, totals.sum[1]));
    }
  });
}

template <int kDim, bool kBrain>
__device__ __forceinline__ void multiply_wide(const Attend& job, std::uint32_t work,
                                              WideShared<kDim>& shared, int& begin) {
  using Shape = WideShape<kDim>;
  constexpr int kTilesOfSplit = kSplitKeys / kTileKeys;
  const std::uint32_t number = wide_worker();
  const WideItem item = wide_item<kDim>(job, work);
  load_wide_queries<kDim>(job, item, shared);
  WideWorker<kDim, kBrain> worker;
  worker.rows = wide_rows_of<kDim>(job, item);
  worker.scale = job.scale * kLog2E;
  worker.query = swizzled_side(shared_address(shared.queries[Shape::kSharers == 1 ? number : 0]));
  worker.values_offset = Shape::kSharers == 1 ? 0 : number * (Shape::kOut * kBlockRowBytes);
  worker.softmax.clear();
  WideTotals<Shape::kOut> totals = {shared.totals[number], {kNothing, kNothing}, {0, 0}};
  const auto keep = [&](int j, const float4& all) { totals.values[j][threadIdx.x % 128] = all; };
  const int first = item.first_tile() - begin;  // tile of keys, less its number
  const int end = begin + item.tiles();
  shared.keys.wait_full(begin);
  worker.begin_scores(shared.keys.tile(begin));
  wait_products<0>();
  shared.keys.give_back(begin);
  worker.weigh((first + begin) * int{kTileKeys});
  pack_weights<kBrain>(worker.score, worker.weights);
  // Of the tile whose values are next to be added: is it the first of its split, and the last?
  bool first_of_split = true;
  bool last_of_split = false;
  float shrink[2];
  float split_top[2];
  float split_sum[2];
  const auto add_values = [&] {
    worker.add_values(first_of_split, shrink);
    if (last_of_split) totals.add(worker.sums, split_top, split_sum, keep);
    first_of_split = last_of_split;
  };
  for (int n = begin + 1; n < end; ++n) {
    shared.keys.wait_full(n);
    worker.begin_scores(shared.keys.tile(n));
    if (n > begin + 1) add_values();
    shared.values.wait_full(n - 1);
    worker.begin_values(shared.values.tile(n - 1));
    wait_products<1>();
    shared.keys.give_back(n);
    last_of_split = (first + n) % kTilesOfSplit == 0;
    for (int r = 0; r < 2; ++r) shrink[r] = worker.softmax.shrink[r];
    if (last_of_split) {
      for (int r = 0; r < 2; ++r) {
        split_top[r] = worker.softmax.top[r];
        split_sum[r] = worker.softmax.quad_sum(r);
      }
      worker.softmax.clear();
    }
    worker.weigh((first + n) * int{kTileKeys});
    wait_products<0>();
    shared.values.give_back(n - 1);
    pack_weights<kBrain>(worker.score, worker.weights);
  }
  if (end > begin + 1) add_values();
  shared.values.wait_full(end - 1);
  worker.begin_values(shared.values.tile(end - 1));
  wait_products<0>();
  shared.values.give_back(end - 1);
  begin = end;
  worker.add_values(first_of_split, worker.softmax.shrink);
  asm volatile("" ::: "memory");  // what is needed again is read again: registers are few
  finish_wide<kDim, kBrain>(job, wide_item<kDim>(job, work), worker, totals);
}

template <int kDim, bool kBrain>
__global__ void __launch_bounds__(kWideThreads, 1) attend_wide(Attend job) {
  extern __shared__ __align__(1024) std::byte raw[];
  auto& shared = *reinterpret_cast<WideShared<kDim>*>(raw);
  if (threadIdx.x == 0) {
    shared.keys.open();
    shared.values.open();
    publish_barriers();
  }
  __syncthreads();
  let_next_launch_begin();
  wait_for_launch_before();
  int n = 0;  // tiles so far
  if (threadIdx.x < 128) {
    give_registers<40>();
    for_works(job, [&](std::uint32_t work) {
      copy_wide<kDim>(job, wide_item<kDim>(job, work), shared, n);
    });
  } else {
    take_registers<232>();
    for_works(job, [&](std::uint32_t work) { multiply_wide<kDim, kBrain>(job, work, shared, n); });
  }
}

template <int kDim, bool kBrain>
void launch_wide_of(const Attend& job, cudaStream_t stream) {
  const std::uint32_t works = job.items_max * job.pages.layout.kv_heads;
  launch_kernel(attend_wide<kDim, kBrain>, dim3(std::min(works, kProcessors)), kWideThreads,
                sizeof(WideShared<kDim>), stream, job);
}

template <int kDim, bool kBrain>
cudaError_t prepare_wide_of() {
  return allow_shared(attend_wide<kDim, kBrain>, sizeof(WideShared<kDim>));
}

}  // namespace pagoda::kernels::cuda

// Paged attention of many query rows (prefill), warp-specialised: bound by the tensor cores and by
// the softmax between their products. It gives the bits of paged_attention.cuh.
//
// A block takes wide tiles of query rows of one KV head, (token, head) pairs packed together, one
// after the other, each through all keys that any of its rows sees. One warpgroup copies tiles of
// kKeyTile keys and values into two rings; two multiply, each with 64 query rows, or, where heads
// have 256 dimensions, with the same rows and half of the value dimensions. A tile's values are
// added up on the tensor core while the next tile is weighed.
#pragma once

#include <algorithm>

#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/attention/wide_codes.cuh"
#include "kernels/cuda/attention/wide_softmax.cuh"

namespace pagoda::kernels::cuda {

// The index of the consumer warpgroup, 0 or 1. The shuffle tells the compiler that a warp has one.
__device__ __forceinline__ std::uint32_t wide_consumer_index() {
  return __shfl_sync(~0u, threadIdx.x / 128, 0) - 1;
}

// A consumer warpgroup on its way through one item. Tiles are counted over all items of the block.
template <int kDim, WgmmaType kKeyType, WgmmaType kValueType>
struct WideConsumer {
  using Shape = WideShape<kDim>;
  static constexpr int kOut = Shape::kOut;

  WideShared<kDim>& shared;
  WideTotals<kOut> totals;
  WideRows rows;
  float scale;
  std::uint64_t query;          // descriptor of the queries in shared memory
  std::uint32_t values_offset;  // of the first block of value dimensions in a tile
  int first;                    // tile of keys, less its number
  WideSoftmax softmax;
  float sums[kOut / 8][4];    // of the split
  float values[kOut / 8][4];  // of a tile
  WideScores score;
  WideWeights weights;
  // These belong to the tile whose values are added next, and to the split that it may end.
  float shrink[2];
  bool ends_split;
  float split_top[2];
  float split_sum[2];

  __device__ __forceinline__ void begin_scores(int n) {
    fence_proxy_async();
    const std::uint64_t key = swizzled_descriptor(shared.keys.tile(n));
    wgmma_fence();
    wgmma<kKeyType>(score, query, key, false);
#pragma unroll
    for (int s = 1; s < kDim / 16; ++s) {
      const int at = (s / 4 * 8192 + s % 4 * 32) >> 4;
      wgmma<kKeyType>(score, query + at, key + at, true);
    }
    wgmma_commit();
  }
  __device__ __forceinline__ void begin_values(int n) {
    fence_proxy_async();
    const std::uint64_t value = swizzled_descriptor(shared.values.tile(n) + values_offset);
    wgmma_fence();
    wgmma<kValueType, MajorB::kN>(values, weights[0], value, false);
#pragma unroll
    for (int k = 1; k < int{kKeyTile} / 16; ++k) {
      wgmma<kValueType, MajorB::kN>(values, weights[k], value + (k * 2048 >> 4), true);
    }
    wgmma_commit();
  }

  __device__ __forceinline__ void clear_sums() {
#pragma unroll
    for (int i = 0; i < kOut / 2; ++i) sums[i / 4][i % 4] = 0;
  }
  __device__ __forceinline__ void add_values() {
#pragma unroll
    for (int i = 0; i < kOut / 2; ++i) {
      float& sum = sums[i / 4][i % 4];
      sum = __fmaf_rn(sum, shrink[i % 4 / 2], values[i / 4][i % 4]);
    }
    if (!ends_split) return;
    totals.add(sums, split_top, split_sum,
               [&](int j, const float(&all)[4]) { totals.keep(j, all); });
    clear_sums();
  }

  // Saves the softmax state that the values of tile n - 1 still need, before tile n changes it.
  __device__ __forceinline__ void turn_to(int n) {
    for (int r = 0; r < 2; ++r) shrink[r] = softmax.shrink[r];
    ends_split = (first + n) % int{kSplitKeys / kKeyTile} == 0;
    if (!ends_split) return;
    for (int r = 0; r < 2; ++r) {
      split_top[r] = softmax.top[r];
      split_sum[r] = softmax.quad_sum(r);
    }
    softmax.clear();
  }
  __device__ __forceinline__ void weigh(int n) {
    const int base = (first + n) * int{kKeyTile};
    rows.hide(base, score);
    softmax.add(scale, {rows.least(0, base), rows.least(1, base)}, score);
  }

  // Attends to tiles [begin, end).
  __device__ __forceinline__ void run(int begin, int end) {
    softmax.clear();
    clear_sums();
    shared.keys.wait_full(begin);
    begin_scores(begin);
    wgmma_wait<0>();
    shared.keys.give_back(begin);
    weigh(begin);
    pack_weights<kValueType>(score, weights);
    bool keys_there = begin + 1 < end && shared.keys.is_full(begin + 1);
    for (int n = begin + 1; n < end; ++n) {
      if (!keys_there) shared.keys.wait_full(n);
      begin_scores(n);
      // Both barriers are tested early, since a test takes a while.
      const bool values_there = shared.values.is_full(n - 1);
      keys_there = shared.keys.is_full(n + 1);
      add_values();
      if (!values_there) shared.values.wait_full(n - 1);
      begin_values(n - 1);
      wgmma_wait<1>();
      shared.keys.give_back(n);
      turn_to(n);
      weigh(n);
      wgmma_wait<0>();
      shared.values.give_back(n - 1);
      pack_weights<kValueType>(score, weights);
    }
    add_values();
    shared.values.wait_full(end - 1);
    begin_values(end - 1);
    wgmma_wait<0>();
    shared.values.give_back(end - 1);
    for (int r = 0; r < 2; ++r) shrink[r] = softmax.shrink[r];
    ends_split = false;
    add_values();
  }
};

// The thread's query row r of 2.
template <int kDim>
__device__ __forceinline__ QueryRow wide_row(const WideItem& item, int r) {
  constexpr std::uint32_t kSharers = WideShape<kDim>::kSharers;
  const std::uint32_t consumer = kSharers == 1 ? wide_consumer_index() : 0;
  const std::uint32_t index =
      item.first_row + consumer * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + 8 * r;
  const std::uint32_t token = index / item.group;
  return {token, index - token * item.group, token < item.sequence.rows};
}

template <int kDim>
__device__ __forceinline__ WideRows wide_rows_of(const PagedAttention& job, const WideItem& item) {
  const std::uint32_t consumer = WideShape<kDim>::kSharers == 1 ? wide_consumer_index() : 0;
  const std::uint32_t first = item.first_row + consumer * 64;
  const std::uint32_t begin = item.sequence.first_position;
  const SeenKeys seen(job.window, item.sequence);
  WideRows rows = {.low = {},
                   .high = {},
                   .all_low = static_cast<int>(seen.first(begin + (first + 63) / item.group)),
                   .all_high = static_cast<int>(begin + first / item.group)};
  for (int r = 0; r < 2; ++r) {
    const QueryRow row = wide_row<kDim>(item, r);
    rows.low[r] = static_cast<int>(seen.first(begin + row.token));
    rows.high[r] = row.there ? static_cast<int>(begin + row.token) : -1;
  }
  return rows;
}

// Copies queries to shared memory; the warpgroups that have the same rows share the work.
template <int kDim>
__device__ __forceinline__ void load_wide_queries(const PagedAttention& job, const WideItem& item,
                                                  WideShared<kDim>& shared) {
  constexpr std::uint32_t kPieces = kDim / 8;
  constexpr std::uint32_t kSharers = WideShape<kDim>::kSharers;
  const std::uint32_t own = kSharers == 1 ? wide_consumer_index() : 0;
  named_barrier_sync(1 + own, kSharers * 128);
  for (std::uint32_t i = threadIdx.x % (kSharers * 128); i < 64 * kPieces; i += kSharers * 128) {
    const std::uint32_t r = i / kPieces;
    const std::uint32_t piece = i % kPieces;
    const std::uint32_t index = item.first_row + own * 64 + r;
    const std::uint32_t token = index / item.group;
    const std::size_t row = std::size_t{item.sequence.first_row + token} * job.heads +
                            item.kv_head * item.group + index - token * item.group;
    cp_async_16(smem_address(shared.queries[own][piece / 8]) + swizzled(r, piece % 8),
                job.query + row * kDim + piece * 8, token < item.sequence.rows ? 16 : 0);
  }
  cp_async_commit();
  cp_async_wait<0>();
  fence_proxy_async();
  named_barrier_sync(1 + own, kSharers * 128);
}

// Merges the last split into those before it and stores the results of the thread's rows.
template <int kDim, class Consumer>
__device__ __forceinline__ void store_wide_results(const PagedAttention& job, const WideItem& item,
                                                   Consumer& consumer) {
  std::uint32_t* to[2];  // pairs: of bf16, or of floats
  bool there[2];
  float sink_top[2] = {kNothing, kNothing};  // of no sink: merging it changes nothing
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const QueryRow row = wide_row<kDim>(item, r);
    const std::uint32_t column = (item.kv_head * item.group + row.head) * kDim +
                                 consumer.values_offset / kBlockRowBytes + threadIdx.x % 4 * 2;
    there[r] = row.there;
    if (job.sinks != nullptr && row.there) {
      sink_top[r] = job.sinks[item.kv_head * item.group + row.head] * kLog2E;
    }
    const std::size_t batch_row = item.sequence.first_row + row.token;
    to[r] =
        job.rotated != nullptr
            ? reinterpret_cast<std::uint32_t*>(job.rotated + batch_row * job.heads * kDim + column)
            : reinterpret_cast<std::uint32_t*>(job.activations +
                                               activation_index(batch_row, column, job.rows));
  }
  // Words from eight columns to the next, and from 64.
  const std::size_t next_block = job.rotated != nullptr ? 8 : 32;
  const std::size_t next_chunk =
      job.rotated != nullptr ? 64 : activation_values(job.rows, kChunkColumns) / 2;
  const float split_sum[2] = {consumer.softmax.quad_sum(0), consumer.softmax.quad_sum(1)};
  const auto& totals = consumer.totals;  // once the split is added
  const auto store = [&](int j, const float(&all)[4]) {
    const std::size_t at = j / 8 * next_chunk + j % 8 * next_block;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const MergeFactors by = merge_factors(totals.top[r], sink_top[r]);
      const float sum = merged(by, totals.sum[r], 1.0f);
      const float low = merged(by, all[2 * r], 0.0f);
      const float high = merged(by, all[2 * r + 1], 0.0f);
      if (!there[r]) continue;
      const float results[2] = {__fdiv_rn(low, sum), __fdiv_rn(high, sum)};
      if (job.rotated != nullptr) {
        *reinterpret_cast<float2*>(to[r] + at) = make_float2(results[0], results[1]);
      } else {
        to[r][at] = pack_bf16(results[0], results[1]);
      }
    }
  };
  consumer.totals.add(consumer.sums, consumer.softmax.top, split_sum, store);
}

// A consumer warpgroup attends to one item; `n` counts tiles.
template <int kDim, WgmmaType kKeyType, WgmmaType kValueType>
__device__ __forceinline__ void consume_wide(const PagedAttention& job, std::uint32_t work,
                                             WideShared<kDim>& shared, int& n) {
  using Shape = WideShape<kDim>;
  const std::uint32_t number = wide_consumer_index();
  const std::uint32_t own = Shape::kSharers == 1 ? number : 0;
  const WideItem item = wide_item<kDim>(job, work);
  load_wide_queries<kDim>(job, item, shared);
  // Members that are not named begin as 0.
  WideConsumer<kDim, kKeyType, kValueType> consumer = {
      .shared = shared,
      .totals = {shared.totals[number], {kNothing, kNothing}, {0, 0}},
      .rows = wide_rows_of<kDim>(job, item),
      .scale = job.scale * kLog2E,
      .query = swizzled_descriptor(smem_address(shared.queries[own])),
      .values_offset = (number - own) * (Shape::kOut * kBlockRowBytes),
      .first = item.first_tile() - n};
  const int end = n + item.tiles();
  consumer.run(n, end);
  n = end;
  asm volatile("" ::: "memory");  // reads the item again instead of keeping it in registers
  store_wide_results<kDim>(job, wide_item<kDim>(job, work), consumer);
}

template <int kDim, WgmmaType kKeyType, WgmmaType kValueType>
__global__ void __launch_bounds__(kWideThreads, 1) paged_attention_wide(PagedAttention job) {
  extern __shared__ __align__(1024) std::byte raw[];
  auto& shared = *reinterpret_cast<WideShared<kDim>*>(raw);
  if (threadIdx.x == 0) {
    shared.keys.open();
    shared.values.open();
    fence_mbarrier_init();
  }
  __syncthreads();
  pdl_trigger();
  pdl_wait();
  int n = 0;  // tiles so far
  // No codes are bf16. They need registers on their way; together there are 168 a thread.
  constexpr bool kMayHaveCodes = kValueType == WgmmaType::kFp16;
  constexpr int kProducerRegisters = kMayHaveCodes ? 56 : 40;
  if (threadIdx.x < 128) {
    setmaxnreg_dec<kProducerRegisters>();
    const bool has_codes_here = kMayHaveCodes && has_codes(job.pages.layout.elements.values);
    for_works(job, [&](std::uint32_t work) {
      const WideItem item = wide_item<kDim>(job, work);
      if constexpr (kMayHaveCodes) {
        if (has_codes_here) return produce_wide_codes<kDim>(job, item, shared, n);
      }
      if constexpr (kKeyType == kValueType) produce_wide<kDim>(job, item, shared, n);
    });
  } else {
    setmaxnreg_inc<(3 * 168 - kProducerRegisters) / 2>();
    for_works(job, [&](std::uint32_t work) {
      consume_wide<kDim, kKeyType, kValueType>(job, work, shared, n);
    });
  }
}

template <int kDim, WgmmaType kKeyType, WgmmaType kValueType>
void launch_wide_of_factors(const PagedAttention& job, StreamHandle stream) {
  const std::uint32_t works = job.items_max * job.pages.layout.kv_heads;
  launch_kernel(paged_attention_wide<kDim, kKeyType, kValueType>, dim3(std::min(works, kSmCount)),
                kWideThreads, sizeof(WideShared<kDim>), stream, job);
}

template <int kDim>
bool launch_paged_attention_wide_of(const PagedAttention& job, StreamHandle stream) {
  constexpr WgmmaType kBf16 = WgmmaType::kBf16;
  constexpr WgmmaType kFp16 = WgmmaType::kFp16;
  const kv::memory::Elements elements = job.pages.layout.elements;
  if (!is_bf16_factor(elements.keys)) {
    launch_wide_of_factors<kDim, kFp16, kFp16>(job, stream);
  } else if (is_bf16_factor(elements.values)) {
    launch_wide_of_factors<kDim, kBf16, kBf16>(job, stream);
  } else {
    launch_wide_of_factors<kDim, kBf16, kFp16>(job, stream);
  }
  return true;
}

template <int kDim>
cudaError_t prepare_paged_attention_wide_of() {
  constexpr WgmmaType kBf16 = WgmmaType::kBf16;
  constexpr WgmmaType kFp16 = WgmmaType::kFp16;
  constexpr std::uint32_t kBytes = sizeof(WideShared<kDim>);
  for (const cudaError_t code :
       {allow_dynamic_smem(paged_attention_wide<kDim, kBf16, kBf16>, kBytes),
        allow_dynamic_smem(paged_attention_wide<kDim, kFp16, kFp16>, kBytes),
        allow_dynamic_smem(paged_attention_wide<kDim, kBf16, kFp16>, kBytes)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda

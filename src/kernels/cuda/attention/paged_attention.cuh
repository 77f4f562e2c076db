// Paged attention for a few query rows (decode), split over the keys as in flash-decoding: bound by
// memory.
//
// A block takes one query tile (16 query rows of one KV head) through some splits; of each its four
// warps take a tile of keys. A warp's keys and values come through a ring of its own in shared
// memory, some 24 KB ahead. The warps' sums are added up in the order in which one warp alone would
// have computed them, to the same bits.
#pragma once

#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/attention/cache_rows.cuh"
#include "kernels/cuda/attention/query_tile.cuh"
#include "kernels/cuda/attention/softmax_state.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

inline constexpr int kAttentionWarps = 4;
inline constexpr int kAttentionThreads = kAttentionWarps * 32;
inline constexpr int kRingStages = 3;
static_assert(kSplitKeys == kAttentionWarps * kKeyTile, "a warp for every tile of keys of a split");

// The keys and values of one warp: its tile of keys of each split, keys first, stage by stage.
template <class Cache>
class WarpRing {
 public:
  using Keys = typename Cache::Keys;
  using Values = typename Cache::Values;
  static constexpr int kKeyStages = static_cast<int>(kKeyTile) / Cache::kKeys;

  // `data`: kRingStages stages in shared memory. `base`: the warp's first key of the first split.
  __device__ __forceinline__ WarpRing(std::uint32_t data, const PagedAttention& job,
                                      const QueryTile& rows, const KeyMask& mask, int base,
                                      int splits)
      : data_(data), pages_(job.pages), rows_(rows), mask_(mask), base_(base), left_(splits) {
    const kv::memory::PageLayout& layout = pages_.layout;
    page_bytes_ = layout.page_bytes();
    shift_ = __ffs(static_cast<int>(layout.block_tokens)) - 1;
    offset_[0] = layout.key_offset(pages_.layer, rows.kv_head, 0);
    offset_[1] = layout.value_offset(pages_.layer, rows.kv_head, 0);
    scale_offset_[0] = layout.key_scale_offset(pages_.layer, rows.kv_head, 0);
    scale_offset_[1] = layout.value_scale_offset(pages_.layer, rows.kv_head, 0);
    scale_step_ = layout.scale_step();
    now_ = page_of(base_);
    next_ = page_of(base_ + static_cast<int>(kSplitKeys));
  }

  // The last key in the first kRingStages stages.
  __device__ __forceinline__ int last_key_of_first() const {
    const int ahead = kRingStages > 2 * kKeyStages ? static_cast<int>(kSplitKeys) : 0;
    return base_ + ahead + static_cast<int>(kKeyTile) - 1;
  }
  __device__ __forceinline__ void start() {
    for (int i = 0; i < kRingStages; ++i) copy_stage();
  }
  // Waits for the next stage; the caller has it until give_back().
  __device__ __forceinline__ std::uint32_t take() {
    cp_async_wait<kRingStages - 1>();
    __syncwarp();
    return data_ + from_ * Cache::kStageBytes;
  }
  __device__ __forceinline__ void give_back() {
    __syncwarp();
    from_ = from_ + 1 == kRingStages ? 0 : from_ + 1;
    copy_stage();
  }

 private:
  // The page of this lane's 16 keys; lanes 0 to 3 have those of a tile.
  __device__ __forceinline__ std::uint32_t page_of(int base) const {
    const int key = base + 16 * (static_cast<int>(threadIdx.x) % 4);
    const int known = min(max(key, mask_.first), mask_.last);  // keys that the table has
    return pages_.tables[rows_.sequence.table_index(static_cast<std::uint32_t>(known) >> shift_)];
  }
  __device__ __forceinline__ void copy_stage() {
    if (left_ > 0) {
      const bool values = stage_ >= kKeyStages;
      const int part = (values ? stage_ - kKeyStages : stage_) * Cache::kKeys;
#pragma unroll
      for (int p = 0; p < Cache::kKeys; p += 16) {
        // Rows of one element are copied by one piece of code.
        if (Cache::kKeyEach == Cache::kValueEach || !values) {
          copy_rows<Keys>(values, part + p, p);
        } else {
          copy_rows<Values>(true, part + p, p);
        }
      }
      if (++stage_ == 2 * kKeyStages) {
        stage_ = 0;
        --left_;
        base_ += static_cast<int>(kSplitKeys);
        now_ = next_;
        next_ = page_of(base_ + static_cast<int>(kSplitKeys));
      }
    }
    to_ = to_ + 1 == kRingStages ? 0 : to_ + 1;
    cp_async_commit();
  }
  // Copies 16 keys or values, from key `part` of the tile on, to row `row` of the stage.
  template <class Rows>
  __device__ __forceinline__ void copy_rows(bool values, int part, int row) {
    const int key = base_ + part;
    const std::byte* const page = pages_.data + __shfl_sync(~0u, now_, part / 16) * page_bytes_;
    const std::uint32_t token = static_cast<std::uint32_t>(key) & (pages_.layout.block_tokens - 1);
    Rows::copy(data_ + to_ * Cache::kStageBytes, row,
               page + (values ? offset_[1] : offset_[0]) + token * Rows::kRowBytes,
               page + (values ? scale_offset_[1] : scale_offset_[0]) + token * Rows::kScaleBytes,
               scale_step_, mask_.first - key, mask_.last - key);
  }

  std::uint32_t data_;
  const PagedKv& pages_;
  const QueryTile& rows_;
  const KeyMask& mask_;
  std::size_t page_bytes_;
  int shift_;              // of a key to its block
  std::size_t offset_[2];  // of this head's keys and values within a page
  std::size_t scale_offset_[2];
  std::size_t scale_step_;
  int base_;       // of the tile being copied
  int left_;       // splits to copy
  int stage_ = 0;  // of the tile, to copy
  int from_ = 0;   // stages of the ring
  int to_ = 0;
  std::uint32_t now_;   // pages of the tile, by lane
  std::uint32_t next_;  // pages of the next tile
};

// Warps exchange partial results in shared memory. A pass adds up as many rows as threads have four
// dimensions of each.
template <class Cache>
struct AttentionShared {
  static constexpr int kPassRows = 4 * kAttentionThreads / Cache::kDim;
  std::byte rings[kAttentionWarps][kRingStages * Cache::kStageBytes];
  float values[kAttentionWarps][kPassRows][Cache::kDim + 8];
  float4 added[kAttentionWarps][kQueryRows];   // by lane of a quad
  float shrinks[kQueryRows][kAttentionWarps];  // factors of earlier warps' results
  float tops[2][kAttentionWarps][kQueryRows];  // highest scores, by parity of the split
};

// The largest visible score of the thread's row r, of a tile of keys, in all lanes of a quad. With
// kAll every row sees all of them.
template <bool kAll>
__device__ __forceinline__ float best_score(const KeyMask& mask, int r, int base,
                                            const float (&score)[kKeyTile / 8][4]) {
  float best = kNothing;
#pragma unroll
  for (int j = 0; j < static_cast<int>(kKeyTile) / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool seen = kAll || mask.sees(r, base + 8 * j + 2 * (threadIdx.x % 4) + i);
      if (seen) best = fmaxf(best, score[j][2 * r + i]);
    }
  }
  best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
  best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
  return kAll || mask.sees_any(r, base) ? fmaxf(best, kLowest) : kNothing;
}

// Turns the scores of row r into weights and returns this lane's part of their sum.
template <bool kAll>
__device__ __forceinline__ float weigh(const KeyMask& mask, int r, int base, float scale, float top,
                                       float (&score)[kKeyTile / 8][4]) {
  const float from = weighed_from(top);
  float added = 0;
#pragma unroll
  for (int j = 0; j < static_cast<int>(kKeyTile) / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float& value = score[j][2 * r + i];
      const bool seen = kAll || mask.sees(r, base + 8 * j + 2 * (threadIdx.x % 4) + i);
      value = seen ? ex2_approx(__fmaf_rn(value, scale, -from)) : 0.0f;
      added += value;
    }
  }
  return added;
}

// One warp's tile of keys of a split, from scores to weighted values.
template <class Cache>
struct WarpTile {
  using Keys = typename Cache::Keys;
  using Values = typename Cache::Values;
  using Ring = WarpRing<Cache>;
  using Shared = AttentionShared<Cache>;
  static constexpr int kDim = Cache::kDim;
  std::uint32_t query[kDim / 16][4];
  std::uint32_t weights[kKeyTile / 16][4];  // the left side of a product, by 16 keys
  float values[kDim / 8][4];

  __device__ __forceinline__ void load_query(const PagedAttention& job, const QueryTile& rows,
                                             const std::uint16_t* queries) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::size_t head =
          std::size_t{rows.sequence.first_row + rows.row[r].token} * job.heads +
          rows.kv_head * rows.group + rows.row[r].head;
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) {
        const std::uint16_t* const from =
            queries + head * kDim + Keys::query_dimension(i / 2, i % 2);
        query[i / 2][i % 2 * 2 + r] =
            rows.row[r].there ? *reinterpret_cast<const std::uint32_t*>(from) : 0;
      }
    }
  }
  // Computes the weights of the tile's keys. `tops` holds the maxima of this split by warp. Leaves
  // in `shared` the sums of weights and the factors that rescale earlier warps' sums.
  __device__ __forceinline__ void weigh_keys(const QueryTile& rows, const KeyMask& mask, int base,
                                             float scale, Ring& ring,
                                             float (&tops)[kAttentionWarps][kQueryRows],
                                             Shared& shared) {
    float score[kKeyTile / 8][4];
#pragma unroll
    for (int s = 0; s < Ring::kKeyStages; ++s) {
      Keys::score(ring.take(), query, score + s * (Cache::kKeys / 8));
      ring.give_back();
    }
    const int halves = rows.count > 8 ? 2 : 1;  // a decoding token has few rows
    const bool all = mask.all_see_all(base);
    if (all) {
      find_tops<true>(halves, mask, base, scale, score, tops);
    } else {
      find_tops<false>(halves, mask, base, scale, score, tops);
    }
    __syncthreads();
    if (all) {
      weigh_rows<true>(halves, mask, base, scale, tops, shared, score);
    } else {
      weigh_rows<false>(halves, mask, base, scale, tops, shared, score);
    }
#pragma unroll
    for (int k = 0; k < static_cast<int>(kKeyTile) / 16; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&pair)[4] = score[2 * k + i / 2];
        const float low = pair[i % 2 * 2];
        const float high = pair[i % 2 * 2 + 1];
        weights[k][i] =
            is_bf16_factor(Cache::kValueEach) ? pack_bf16(low, high) : pack_fp16(low, high);
      }
    }
  }
  // The maxima over this warp's keys.
  template <bool kAll>
  __device__ __forceinline__ static void find_tops(int halves, const KeyMask& mask, int base,
                                                   float scale,
                                                   const float (&score)[kKeyTile / 8][4],
                                                   float (&tops)[kAttentionWarps][kQueryRows]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (r == halves) break;
      const float top = best_score<kAll>(mask, r, base, score) * scale;
      if (threadIdx.x % 4 == 0) tops[threadIdx.x / 32][threadIdx.x % 32 / 4 + 8 * r] = top;
    }
  }
  // Turns scores into weights. Rows beyond the tile's last weigh 0.
  template <bool kAll>
  __device__ __forceinline__ static void weigh_rows(
      int halves, const KeyMask& mask, int base, float scale,
      const float (&tops)[kAttentionWarps][kQueryRows], Shared& shared,
      float (&score)[kKeyTile / 8][4]) {
    const int warp = threadIdx.x / 32;
    const int quad = threadIdx.x % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (r == halves) {
#pragma unroll
        for (auto& fragment : score) fragment[2] = fragment[3] = 0;
        break;
      }
      const int row = threadIdx.x % 32 / 4 + 8 * r;
      float before = kNothing;
      for (int w = 0; w < warp; ++w) before = fmaxf(before, tops[w][row]);
      const float top = fmaxf(before, tops[warp][row]);
      if (quad == 0) shared.shrinks[row][warp] = ex2_approx(before - weighed_from(top));
      reinterpret_cast<float*>(&shared.added[warp][row])[quad] =
          weigh<kAll>(mask, r, base, scale, top, score);
    }
  }
  __device__ __forceinline__ void weigh_values(Ring& ring) {
#pragma unroll
    for (auto& fragment : values) {
      for (float& value : fragment) value = 0;
    }
#pragma unroll
    for (int s = 0; s < Ring::kKeyStages; ++s) {
      Values::add_values(ring.take(), weights + s * (Cache::kKeys / 16), values);
      ring.give_back();
    }
  }
  // Stores the values of a pass's rows where the other warps find them.
  __device__ __forceinline__ void show_values(int pass, Shared& shared) const {
    const int low = threadIdx.x % 32 / 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int place = low + 8 * r - pass * Shared::kPassRows;
      if (place < 0 || place >= Shared::kPassRows) continue;
      float* const to = shared.values[threadIdx.x / 32][place];
#pragma unroll
      for (int j = 0; j < kDim / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) to[Values::dimension(j, i)] = values[j][2 * r + i];
      }
    }
  }
};

// Adds up the sums of all warps over a split, left to right, for row `row`, which is `place` in the
// pass.
template <class Cache>
__device__ __forceinline__ RowSums split_sums(const AttentionShared<Cache>& shared,
                                              const float (&tops)[kAttentionWarps][kQueryRows],
                                              int place, int row, int dimension) {
  RowSums sums;
  float lanes[4] = {};
#pragma unroll
  for (int w = 0; w < kAttentionWarps; ++w) {
    const float shrink = shared.shrinks[row][w];
    const float4 values = *reinterpret_cast<const float4*>(&shared.values[w][place][dimension]);
    const float4 added = shared.added[w][row];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums.values[i] = __fmaf_rn(sums.values[i], shrink, (&values.x)[i]);
      lanes[i] = __fmaf_rn(lanes[i], shrink, (&added.x)[i]);
    }
    sums.top = fmaxf(sums.top, tops[w][row]);
  }
  sums.sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  return sums;
}

// One block's way through the splits of its item.
template <class Cache>
struct AttentionBlock {
  using Shared = AttentionShared<Cache>;
  static constexpr int kDim = Cache::kDim;
  static constexpr int kPasses = static_cast<int>(kQueryRows) / Shared::kPassRows;

  const PagedAttention& job;
  const AttentionItem& item;
  const QueryTile& rows;
  Shared& shared;
  RowSums totals[kPasses];
  int turn = 0;  // counts splits
  bool waited = false;

  __device__ __forceinline__ static int place() { return threadIdx.x * 4 / kDim; }  // of a pass
  __device__ __forceinline__ static int dimension() { return threadIdx.x * 4 % kDim; }

  // Attends to splits [first, first + splits) of a part of the keys.
  __device__ __forceinline__ void attend(KeyPart part, std::uint32_t first, int splits) {
    const KeyMask mask = rows.mask(item, part);
    const int warp = threadIdx.x / 32;
    int base = static_cast<int>(first * kSplitKeys + warp * kKeyTile);
    WarpRing<Cache> ring(smem_address(shared.rings[warp]), job, rows, mask, base, splits);
    // Keys of earlier steps can be copied at once; the launch before this one writes this step's.
    const bool early =
        waited || ring.last_key_of_first() < static_cast<int>(rows.sequence.first_position);
    if (early) ring.start();
    if (!waited) pdl_wait();
    waited = true;
    if (!early) ring.start();

    const std::uint16_t* const queries = part == KeyPart::kSinks ? job.sink_query : job.query;
    WarpTile<Cache> tile;
    if constexpr (kDim < 256) tile.load_query(job, rows, queries);
    for (int split = 0; split < splits; ++split, base += static_cast<int>(kSplitKeys)) {
      if constexpr (kDim == 256) tile.load_query(job, rows, queries);  // no room to keep it
      auto& tops = shared.tops[turn++ % 2];
      tile.weigh_keys(rows, mask, base, job.scale * kLog2E, ring, tops, shared);
      tile.weigh_values(ring);
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        if (pass * Shared::kPassRows >= static_cast<int>(rows.count)) break;
        if (pass > 0) __syncthreads();
        tile.show_values(pass, shared);
        __syncthreads();
        add_split(tops, pass, split);
      }
    }
    cp_async_wait<0>();
    __syncwarp();
  }
  // Adds the sums of a split to those before it, or stores them as a partial result.
  __device__ __forceinline__ void add_split(const float (&tops)[kAttentionWarps][kQueryRows],
                                            int pass, int split) {
    const int row = pass * Shared::kPassRows + place();
    if (row >= static_cast<int>(rows.count)) return;
    const RowSums sums = split_sums<Cache>(shared, tops, place(), row, dimension());
    if (item.partial == kWhole) return totals[pass].merge(sums);
    const std::size_t partial = item.partial + (std::size_t{rows.kv_head} * rows.count + row) +
                                std::size_t{job.pages.layout.kv_heads} * rows.count * split;
    sums.store_partial(job.partials + partial * partial_floats(kDim), kDim, dimension());
  }
  // Merges the sinks of heads and stores the results.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int row = pass * Shared::kPassRows + place();
      if (row >= static_cast<int>(rows.count)) continue;
      RowSums& sums = totals[pass];
      if (job.sinks != nullptr) sums.merge_sink(job.sinks[rows.head(item, row)]);
      const ResultRow to = rows.result(job, item, row);
      to.store(dimension(), __fdiv_rn(sums.values[0], sums.sum),
               __fdiv_rn(sums.values[1], sums.sum));
      to.store(dimension() + 2, __fdiv_rn(sums.values[2], sums.sum),
               __fdiv_rn(sums.values[3], sums.sum));
    }
  }
};

template <class Cache>
__global__ void __launch_bounds__(kAttentionThreads, 2) paged_attention(PagedAttention job) {
  extern __shared__ __align__(128) std::byte raw[];
  pdl_trigger();
  if (blockIdx.x >= *job.item_count) return pdl_wait();
  const AttentionItem item = job.items[blockIdx.x];
  const QueryTile rows(job, item);
  AttentionBlock<Cache> block = {
      job, item, rows, *reinterpret_cast<AttentionShared<Cache>*>(raw), {}};
  const bool whole = item.partial == kWhole;
  KeyPart part = item.sinks != 0 ? KeyPart::kSinks : KeyPart::kWindow;
  std::uint32_t first = item.first_split;
  std::uint32_t last = item.last_split;
#pragma unroll 1
  for (;;) {
    block.attend(part, first, static_cast<int>(last - first));
    if (!whole || part == KeyPart::kSinks || !rows.has_gap(item)) break;
    part = KeyPart::kSinks;
    first = 0;
    last = rows.seen.sink_splits();
  }
  if (whole) block.finish();
}

// Calls `visit` with the rows of each pair of elements that has a kernel here; the general kernel
// takes the others.
template <int kDim, class Visit>
void for_cache_pairs(Visit&& visit) {
  visit(CachePair<Element::kBF16, Element::kBF16, kDim>());
  visit(CachePair<Element::kF16, Element::kF16, kDim>());
  visit(CachePair<Element::kE4M3, Element::kE4M3, kDim>());
  visit(CachePair<Element::kE5M2, Element::kE5M2, kDim>());
  visit(CachePair<Element::kInt8, Element::kInt8, kDim>());
  visit(CachePair<Element::kInt8, Element::kInt4, kDim>());
  visit(CachePair<Element::kInt4, Element::kInt4, kDim>());
  visit(CachePair<Element::kBF16, Element::kInt8, kDim>());
  visit(CachePair<Element::kBF16, Element::kE4M3, kDim>());
}

template <int kDim>
bool launch_paged_attention_of(const PagedAttention& job, StreamHandle stream) {
  bool launched = false;
  for_cache_pairs<kDim>([&]<class Cache>(Cache) {
    if (job.pages.layout.elements != kv::memory::Elements(Cache::kKeyEach, Cache::kValueEach)) {
      return;
    }
    launch_kernel(paged_attention<Cache>, dim3(job.items_max, job.pages.layout.kv_heads),
                  kAttentionThreads, sizeof(AttentionShared<Cache>), stream, job);
    launched = true;
  });
  return launched;
}

template <int kDim>
cudaError_t prepare_paged_attention_of() {
  cudaError_t code = cudaSuccess;
  for_cache_pairs<kDim>([&]<class Cache>(Cache) {
    if (code != cudaSuccess) return;
    code = allow_dynamic_smem(paged_attention<Cache>, sizeof(AttentionShared<Cache>));
  });
  return code;
}

}  // namespace pagoda::kernels::cuda

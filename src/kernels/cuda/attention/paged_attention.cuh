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
template <Element kElement, int kDim>
class WarpRing {
 public:
  using Rows = CacheRows<kElement, kDim>;
  static constexpr int kKeyStages = static_cast<int>(kKeyTile) / Rows::kKeys;

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
    return data_ + from_ * Rows::kStageBytes;
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
    return pages_.tables[rows_.sequence.table + (static_cast<std::uint32_t>(known) >> shift_)];
  }
  __device__ __forceinline__ void copy_stage() {
    if (left_ > 0) {
      const bool values = stage_ >= kKeyStages;
      const int part = (values ? stage_ - kKeyStages : stage_) * Rows::kKeys;
#pragma unroll
      for (int p = 0; p < Rows::kKeys; p += 16) copy_rows(values, part + p, p);
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
  __device__ __forceinline__ void copy_rows(bool values, int part, int row) {
    const int key = base_ + part;
    const std::byte* const page = pages_.data + __shfl_sync(~0u, now_, part / 16) * page_bytes_;
    const std::uint32_t token = static_cast<std::uint32_t>(key) & (pages_.layout.block_tokens - 1);
    Rows::copy(data_ + to_ * Rows::kStageBytes, row,
               page + (values ? offset_[1] : offset_[0]) + token * Rows::kRowBytes,
               page + (values ? scale_offset_[1] : scale_offset_[0]) + token * Rows::kScaleBytes,
               mask_.first - key, mask_.last - key);
  }

  std::uint32_t data_;
  const PagedKv& pages_;
  const QueryTile& rows_;
  const KeyMask& mask_;
  std::size_t page_bytes_;
  int shift_;              // of a key to its block
  std::size_t offset_[2];  // of this head's keys and values within a page
  std::size_t scale_offset_[2];
  int base_;       // of the tile being copied
  int left_;       // splits to copy
  int stage_ = 0;  // of the tile, to copy
  int from_ = 0;   // stages of the ring
  int to_ = 0;
  std::uint32_t now_;   // pages of the tile, by lane
  std::uint32_t next_;  // of the next one
};

// What the warps hand to each other in shared memory. A pass adds up as many rows as threads have
// four dimensions of each.
template <Element kElement, int kDim>
struct AttentionShared {
  static constexpr int kPassRows = 4 * kAttentionThreads / kDim;
  std::byte rings[kAttentionWarps][kRingStages * CacheRows<kElement, kDim>::kStageBytes];
  float values[kAttentionWarps][kPassRows][kDim + 8];
  float4 added[kAttentionWarps][kQueryRows];   // by lane of a quad
  float shrinks[kQueryRows][kAttentionWarps];  // of what earlier warps found
  float tops[2][kAttentionWarps][kQueryRows];  // of even and odd splits
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
template <Element kElement, int kDim>
struct WarpTile {
  using Rows = CacheRows<kElement, kDim>;
  using Ring = WarpRing<kElement, kDim>;
  using Shared = AttentionShared<kElement, kDim>;
  std::uint32_t query[kDim / 16][4];
  std::uint32_t weights[kKeyTile / 16][4];  // the left side of a product, by 16 keys
  float values[kDim / 8][4];

  __device__ __forceinline__ void load_query(const PagedAttention& job, const QueryTile& rows) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::size_t head =
          std::size_t{rows.sequence.first_row + rows.row[r].token} * job.heads +
          rows.kv_head * rows.group + rows.row[r].head;
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) {
        const std::uint16_t* const from =
            job.query + head * kDim + Rows::query_dimension(i / 2, i % 2);
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
      Rows::score(ring.take(), query, score + s * (Rows::kKeys / 8));
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
        weights[k][i] = kElement == Element::kBF16 ? pack_bf16(low, high) : pack_fp16(low, high);
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
      Rows::add_values(ring.take(), weights + s * (Rows::kKeys / 16), values);
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
        for (int i = 0; i < 2; ++i) to[Rows::dimension(j, i)] = values[j][2 * r + i];
      }
    }
  }
};

// Adds up the sums of all warps over a split, left to right, for row `row`, which is `place` in the
// pass.
template <Element kElement, int kDim>
__device__ __forceinline__ RowSums split_sums(const AttentionShared<kElement, kDim>& shared,
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

template <Element kElement, int kDim>
__global__ void __launch_bounds__(kAttentionThreads, 2) paged_attention(PagedAttention job) {
  using Shared = AttentionShared<kElement, kDim>;
  constexpr int kPasses = static_cast<int>(kQueryRows) / Shared::kPassRows;
  extern __shared__ __align__(128) std::byte raw[];
  auto& shared = *reinterpret_cast<Shared*>(raw);
  pdl_trigger();
  if (blockIdx.x >= *job.item_count) return pdl_wait();
  const AttentionItem item = job.items[blockIdx.x];
  const QueryTile rows(job, item);
  const KeyMask mask = rows.mask(job, item);
  const int splits = static_cast<int>(item.last_split - item.first_split);
  const int warp = threadIdx.x / 32;
  int base = static_cast<int>(item.first_split * kSplitKeys + warp * kKeyTile);
  WarpRing<kElement, kDim> ring(smem_address(shared.rings[warp]), job, rows, mask, base, splits);
  // Keys of earlier steps can be copied at once; the launch before this one writes this step's.
  const bool early = ring.last_key_of_first() < static_cast<int>(rows.sequence.first_position);
  if (early) ring.start();
  pdl_wait();
  if (!early) ring.start();

  WarpTile<kElement, kDim> tile;
  if constexpr (kDim < 256) tile.load_query(job, rows);
  const int place = threadIdx.x * 4 / kDim;  // of a pass
  const int dimension = threadIdx.x * 4 % kDim;
  RowSums totals[kPasses];
  for (int split = 0; split < splits; ++split, base += static_cast<int>(kSplitKeys)) {
    if constexpr (kDim == 256) tile.load_query(job, rows);  // no room to keep it
    auto& tops = shared.tops[split % 2];
    tile.weigh_keys(rows, mask, base, job.scale * kLog2E, ring, tops, shared);
    tile.weigh_values(ring);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int row = pass * Shared::kPassRows + place;
      if (pass * Shared::kPassRows >= static_cast<int>(rows.count)) break;
      if (pass > 0) __syncthreads();
      tile.show_values(pass, shared);
      __syncthreads();
      if (row >= static_cast<int>(rows.count)) continue;
      const RowSums sums = split_sums(shared, tops, place, row, dimension);
      if (item.partial == kWhole) {
        totals[pass].merge(sums);
        continue;
      }
      const std::size_t partial = item.partial + (std::size_t{rows.kv_head} * rows.count + row) +
                                  std::size_t{job.pages.layout.kv_heads} * rows.count * split;
      sums.store_partial(job.partials + partial * partial_floats(kDim), kDim, dimension);
    }
  }
  cp_async_wait<0>();
  if (item.partial != kWhole) return;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int row = pass * Shared::kPassRows + place;
    if (row < static_cast<int>(rows.count)) {
      if (job.sinks != nullptr) totals[pass].merge_sink(job.sinks[rows.head(item, row)]);
      totals[pass].store(rows.result(job, item, row, dimension));
    }
  }
}

template <Element kElement, int kDim>
void launch_of_element(const PagedAttention& job, StreamHandle stream) {
  launch_kernel(paged_attention<kElement, kDim>, dim3(job.items_max, job.pages.layout.kv_heads),
                kAttentionThreads, sizeof(AttentionShared<kElement, kDim>), stream, job);
}

template <int kDim>
void launch_paged_attention_of(const PagedAttention& job, StreamHandle stream) {
  switch (job.pages.layout.elements.keys) {
    case Element::kBF16:
      return launch_of_element<Element::kBF16, kDim>(job, stream);
    case Element::kE4M3:
      return launch_of_element<Element::kE4M3, kDim>(job, stream);
    default:
      return launch_of_element<Element::kF16, kDim>(job, stream);
  }
}

template <Element kElement, int kDim>
cudaError_t prepare_of_element() {
  return allow_dynamic_smem(paged_attention<kElement, kDim>,
                            sizeof(AttentionShared<kElement, kDim>));
}

template <int kDim>
cudaError_t prepare_paged_attention_of() {
  for (const cudaError_t code :
       {prepare_of_element<Element::kBF16, kDim>(), prepare_of_element<Element::kE4M3, kDim>(),
        prepare_of_element<Element::kF16, kDim>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda

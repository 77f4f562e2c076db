// The producer side of wide attention: which items a block takes, its shared memory, and the
// warpgroup that copies keys and values out of their pages.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/warp_specialization.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace pagoda::kernels::cuda {

inline constexpr std::uint32_t kWideThreads = 3 * 128;
inline constexpr std::uint32_t kWideConsumerThreads = 2 * 128;  // of those, the ones that multiply

template <int kDim>
struct WideShape {
  static constexpr int kRows = static_cast<int>(wide_rows(kDim));
  static constexpr int kSharers = 128 / kRows;  // warpgroups with the same query rows
  static constexpr int kOut = kDim / kSharers;  // value dimensions of a warpgroup
  static constexpr int kStages = kDim == 256 ? 2 : 4;
  static constexpr std::uint32_t kTileBytes = kKeyTile * kDim * 2;
};

// A ring buffer of tiles of keys, or of values, in shared memory.
template <int kDim>
struct alignas(1024) WideRing {
  static constexpr int kStages = WideShape<kDim>::kStages;
  std::byte data[kStages][WideShape<kDim>::kTileBytes];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];

  __device__ __forceinline__ void open() {
    for (int i = 0; i < kStages; ++i) {
      mbarrier_init(&full[i], 128);
      mbarrier_init(&empty[i], kWideConsumerThreads / 32);
    }
  }
  __device__ __forceinline__ std::uint32_t tile(int n) const {
    return smem_address(data) + n % kStages * WideShape<kDim>::kTileBytes;
  }
  __device__ __forceinline__ void wait_full(int n) {
    mbarrier_wait(&full[n % kStages], n / kStages % 2);
  }
  // Whether tile n is there. n is the tile that wait_full() is called for next, or the one after.
  __device__ __forceinline__ bool is_full(int n) {
    return mbarrier_test_wait(&full[n % kStages], n / kStages % 2);
  }
  __device__ __forceinline__ void wait_empty(int n) {
    mbarrier_wait(&empty[n % kStages], (n / kStages + 1) % 2);
  }
  __device__ __forceinline__ void give_back(int n) {
    if (threadIdx.x % 32 == 0) mbarrier_arrive(&empty[n % kStages]);
  }
};

template <int kDim>
struct WideShared {
  using Shape = WideShape<kDim>;
  std::byte queries[Shape::kRows / 64][kDim / 64][64 * kBlockRowBytes];
  WideRing<kDim> keys;
  WideRing<kDim> values;
  float4 totals[2][Shape::kOut / 8][128];  // of each thread that multiplies
};

// One item as a block needs it: its rows, and the keys that any of them sees.
struct WideItem {
  BatchSequence sequence;
  std::uint32_t kv_head;
  std::uint32_t group;
  std::uint32_t first_row;  // query row of the sequence
  int first_key;            // the first and last key that any row sees
  int last_key;

  __device__ __forceinline__ int first_tile() const { return first_key / int{kKeyTile}; }
  __device__ __forceinline__ int tiles() const {
    return last_key / int{kKeyTile} + 1 - first_tile();
  }
};

// Item `work` of all items times all KV heads.
template <int kDim>
__device__ __forceinline__ WideItem wide_item(const PagedAttention& job, std::uint32_t work) {
  constexpr std::uint32_t kRows = WideShape<kDim>::kRows;
  const AttentionItem item = job.items[work / job.pages.layout.kv_heads];
  const BatchSequence sequence = job.sequences[item.sequence];
  const std::uint32_t group = job.heads / job.pages.layout.kv_heads;
  const std::uint32_t first_row = item.tile * kRows;
  const std::uint32_t last_token = min(sequence.rows - 1, (first_row + kRows - 1) / group);
  const std::uint32_t begin = sequence.first_position;
  const SeenKeys seen(job.window, sequence);
  return {.sequence = sequence,
          .kv_head = work % job.pages.layout.kv_heads,
          .group = group,
          .first_row = first_row,
          .first_key = static_cast<int>(seen.first(begin + first_row / group)),
          .last_key = static_cast<int>(begin + last_token)};
}

// Calls `visit` with the work items of this block. Items become shorter towards the end, so every
// other round deals them to blocks in reverse order: the blocks' totals are nearly equal.
template <class Visit>
__device__ __forceinline__ void for_works(const PagedAttention& job, Visit&& visit) {
  const std::uint32_t works = *job.item_count * job.pages.layout.kv_heads;
  for (std::uint32_t turn = 0;; ++turn) {
    const std::uint32_t place = turn % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    const std::uint32_t work = turn * gridDim.x + place;
    if (work >= works) return;
    visit(work);
  }
}

// The producer warpgroup copies the tiles of one item; `n` counts tiles. A warp copies 16 keys of
// every tile, all of one page: a KV block has a multiple of 16 tokens. Keys that no row sees are
// copied as zeros, since their memory may hold anything.
template <int kDim>
__device__ __forceinline__ void produce_wide(const PagedAttention& job, const WideItem& item,
                                             WideShared<kDim>& shared, int& n) {
  constexpr int kRowBytes = kDim * 2;
  const kv::memory::PageLayout& layout = job.pages.layout;
  const int shift = 31 - __clz(static_cast<int>(layout.block_tokens));
  const int first_of_warp = static_cast<int>(threadIdx.x) / 32 * 16;
  const int row = static_cast<int>(threadIdx.x) % 32 / 8;  // and every fourth from there
  const int piece = static_cast<int>(threadIdx.x) % 8;     // of every block
  const std::size_t key_offset = layout.key_offset(job.pages.layer, item.kv_head, 0);
  const std::size_t to_values = layout.value_offset(job.pages.layer, item.kv_head, 0) - key_offset;
  const std::byte* const head = job.pages.data + key_offset + row * kRowBytes + piece * 16;
  const std::uint32_t place = swizzled(first_of_warp + row, piece);
  const auto page_of = [&](int tile) {
    const int key = tile * int{kKeyTile} + first_of_warp;
    const int known = min(max(key, item.first_key), item.last_key);
    return job.pages.tables[item.sequence.table_index(static_cast<std::uint32_t>(known) >> shift)];
  };
  const int end = item.first_tile() + item.tiles();
  std::uint32_t page = page_of(item.first_tile());
  for (int tile = item.first_tile(); tile < end; ++tile, ++n) {
    const int key = tile * int{kKeyTile} + first_of_warp;
    const std::byte* const from = head + page * layout.page_bytes() +
                                  (key & (static_cast<int>(layout.block_tokens) - 1)) * kRowBytes;
    page = page_of(tile + 1);
    const bool all = key >= item.first_key && key + 15 <= item.last_key;
    const auto copy = [&](WideRing<kDim>& ring, const std::byte* rows) {
      ring.wait_empty(n);
      const std::uint32_t to = ring.tile(n) + place;
      const auto copy_rows = [&](int i, bool there) {
#pragma unroll
        for (int part = 0; part < kDim / 64; ++part) {
          cp_async_16((to ^ i % 2 * 64) + i * 4 * kBlockRowBytes + part * 64 * kBlockRowBytes,
                      rows + i * 4 * kRowBytes + part * kBlockRowBytes, there ? 16 : 0);
        }
      };
      if (all) {
#pragma unroll
        for (int i = 0; i < 4; ++i) copy_rows(i, true);
      } else {
#pragma unroll 1
        for (int i = 0; i < 4; ++i) {
          const int own = key + row + 4 * i;
          copy_rows(i, own >= item.first_key && own <= item.last_key);
        }
      }
      cp_async_mbarrier_arrive(&ring.full[n % WideShape<kDim>::kStages]);
    };
    copy(shared.keys, from);
    copy(shared.values, from + to_values);
  }
}

}  // namespace pagoda::kernels::cuda

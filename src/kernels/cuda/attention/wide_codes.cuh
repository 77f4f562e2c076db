// The producer side of wide attention over codes: the copying warpgroup reads them from their pages
// into registers, turns them into the fp16 numbers that they stand for (cache_codes.cuh) and stores
// those in the layout in which wgmma reads tiles. Tensor cores wait for none of it as long as a
// tile takes less than the two products and the softmax of its keys.
#pragma once

#include "kernels/cuda/attention/cache_codes.cuh"
#include "kernels/cuda/attention/wide_producer.cuh"

namespace pagoda::kernels::cuda {

// Where a warp's 16 rows of a tile stand, and which of them any query sees.
struct WideSource {
  const std::byte* rows;     // of the first
  const std::byte* scales;   // of its first group
  std::uint32_t scale_step;  // bytes from group to group
  int first;                 // the rows that are seen, counted from 0 to 15; others become 0
  int last;
};

// Stores 16 rows of codes, the warp's part of a tile that begins at address `tile`.
template <Element kElement, int kDim>
__device__ __forceinline__ void store_wide_rows(const WideSource& from, std::uint32_t tile) {
  constexpr int kRowBytes = static_cast<int>(kv::memory::row_bytes(kElement, kDim));
  constexpr int kChunks = kRowBytes / 16;  // of a row
  constexpr int kRowsAtOnce = 32 / kChunks;
  constexpr int kRounds = 16 / kRowsAtOnce;
  constexpr int kTogether = kRounds < 4 ? kRounds : 4;  // loads on their way
  constexpr int kPieces = kCodePairs<kElement>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int chunk = lane % kChunks;
  const int first_of_warp = static_cast<int>(threadIdx.x) / 32 * 16;
#pragma unroll 1
  for (int round = 0; round < kRounds; round += kTogether) {
    uint4 codes[kTogether];
    __half scales[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int row = (round + i) * kRowsAtOnce + lane / kChunks;
      codes[i] = make_uint4(0, 0, 0, 0);
      scales[i] = __ushort_as_half(0);
      if (row < from.first || row > from.last) continue;
      codes[i] = *reinterpret_cast<const uint4*>(from.rows + row * kRowBytes + chunk * 16);
      if constexpr (kv::memory::scale_bytes(kElement) > 0) {
        const int group = kElement == Element::kInt4 ? chunk : 0;
        scales[i] = reinterpret_cast<const __half*>(from.scales + group * from.scale_step)[row];
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int row = first_of_warp + (round + i) * kRowsAtOnce + lane / kChunks;
      uint4 pieces[kPieces];
      widen_chunk<kElement>(codes[i], scales[i], pieces);
#pragma unroll
      for (int k = 0; k < kPieces; ++k) {
        const int piece = chunk * kPieces + k;  // of eight dimensions
        st_shared_v4(tile + piece / 8 * 64 * kBlockRowBytes + swizzled(row, piece % 8), pieces[k]);
      }
    }
  }
}

// Copies 16 rows of 16-bit numbers in the same way.
template <int kDim>
__device__ __forceinline__ void copy_wide_rows(const WideSource& from, std::uint32_t tile) {
  constexpr int kPieces = kDim / 8;  // of a row
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_of_warp = static_cast<int>(threadIdx.x) / 32 * 16;
#pragma unroll 4
  for (int at = lane; at < 16 * kPieces; at += 32) {
    const int row = at / kPieces;
    const int piece = at % kPieces;
    const bool there = row >= from.first && row <= from.last;
    cp_async_16(tile + piece / 8 * 64 * kBlockRowBytes + swizzled(first_of_warp + row, piece % 8),
                from.rows + at * 16, there ? 16 : 0);
  }
}

// Puts the warp's part of a tile into a ring.
template <int kDim>
__device__ __forceinline__ void produce_wide_part(Element element, const WideSource& from,
                                                  WideRing<kDim>& ring, int n) {
  ring.wait_empty(n);
  const std::uint32_t tile = ring.tile(n);
  switch (element) {
    case Element::kE4M3:
      store_wide_rows<Element::kE4M3, kDim>(from, tile);
      break;
    case Element::kE5M2:
      store_wide_rows<Element::kE5M2, kDim>(from, tile);
      break;
    case Element::kInt8:
      store_wide_rows<Element::kInt8, kDim>(from, tile);
      break;
    case Element::kInt4:
      store_wide_rows<Element::kInt4, kDim>(from, tile);
      break;
    default:
      copy_wide_rows<kDim>(from, tile);
      return cp_async_mbarrier_arrive(&ring.full[n % WideShape<kDim>::kStages]);
  }
  fence_proxy_async();
  mbarrier_arrive(&ring.full[n % WideShape<kDim>::kStages]);
}

// produce_wide() of values, or keys and values, that are codes. A page has less than 4 GiB.
template <int kDim>
__device__ __forceinline__ void produce_wide_codes(const PagedAttention& job, const WideItem& item,
                                                   WideShared<kDim>& shared, int& n) {
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t layer = job.pages.layer;
  const auto word = [](std::size_t bytes) { return static_cast<std::uint32_t>(bytes); };
  const std::uint32_t keys = word(layout.key_offset(layer, item.kv_head, 0));
  const std::uint32_t values = word(layout.value_offset(layer, item.kv_head, 0));
  const std::uint32_t key_scales = word(layout.key_scale_offset(layer, item.kv_head, 0));
  const std::uint32_t value_scales = word(layout.value_scale_offset(layer, item.kv_head, 0));
  const std::size_t page_bytes = layout.page_bytes();
  const int shift = 31 - __clz(static_cast<int>(layout.block_tokens));
  const int first_of_warp = static_cast<int>(threadIdx.x) / 32 * 16;
  const auto page_of = [&](int tile) {
    const int known = min(max(tile * int{kKeyTile} + first_of_warp, item.first_key), item.last_key);
    return job.pages.tables[item.sequence.table_index(static_cast<std::uint32_t>(known) >> shift)];
  };
  const int end = item.first_tile() + item.tiles();
  std::uint32_t page = page_of(item.first_tile());
  for (int tile = item.first_tile(); tile < end; ++tile, ++n) {
    const int key = tile * int{kKeyTile} + first_of_warp;
    const std::byte* const data = job.pages.data + page * page_bytes;
    page = page_of(tile + 1);
    const std::uint32_t token = static_cast<std::uint32_t>(key) & (layout.block_tokens - 1);
    WideSource from = {.rows = data + keys + token * word(layout.key_row_bytes()),
                       .scales = data + key_scales + token * 2,
                       .scale_step = word(layout.scale_step()),
                       .first = item.first_key - key,
                       .last = item.last_key - key};
    produce_wide_part<kDim>(layout.elements.keys, from, shared.keys, n);
    from.rows = data + values + token * word(layout.value_row_bytes());
    from.scales = data + value_scales + token * 2;
    produce_wide_part<kDim>(layout.elements.values, from, shared.values, n);
  }
}

}  // namespace pagoda::kernels::cuda

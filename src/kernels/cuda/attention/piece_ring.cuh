// The keys and values of general attention on their way from pages to shared memory: a piece, which
// is the keys or the values of a tile of keys, at a time.
#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda/attention/cache_codes.cuh"
#include "kernels/cuda/attention/query_tile.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

inline constexpr int kGeneralWarps = 8;
inline constexpr int kGeneralThreads = kGeneralWarps * 32;
inline constexpr int kGeneralTile = static_cast<int>(kKeyTile);
static_assert(kGeneralTile == 8 * kGeneralWarps, "a warp scores eight keys");

// The sizes of a launch, and where things stand in its dynamic shared memory: queries, then a ring
// of pieces. A piece is the keys or the values of a tile, or, of latents, both. Rows are padded, so
// that the 16-byte chunks of eight rows lie in different banks.
struct GeneralShape {
  int key_steps;        // of 16 dimensions
  int value_units;      // of 16 dimensions
  int key_row_bytes;    // in shared memory
  int value_row_bytes;  // the same
  int piece_bytes;
  int query_bytes;
  bool latent;

  __host__ __device__ static GeneralShape of(const kv::memory::PageLayout& layout) {
    GeneralShape shape = {};
    shape.latent = layout.values_in_keys;
    shape.key_steps = static_cast<int>(layout.key_dim + 15) / 16;
    shape.value_units = static_cast<int>(layout.value_dim) / 16;
    shape.key_row_bytes = shape.key_steps * 32 + 16;
    shape.value_row_bytes = shape.latent ? shape.key_row_bytes : shape.value_units * 32 + 16;
    const int longest =
        shape.key_row_bytes > shape.value_row_bytes ? shape.key_row_bytes : shape.value_row_bytes;
    shape.piece_bytes = kGeneralTile * longest;
    shape.query_bytes = static_cast<int>(kQueryRows) * shape.key_row_bytes;
    return shape;
  }
  // A load of four blocks may read past the last row.
  static constexpr int kReadOn = 64;
  __host__ __device__ int shared_bytes(int slots) const {
    return query_bytes + slots * piece_bytes + kReadOn;
  }
};

// Eight rows of codes on their way to shared memory, where they are fp16.
struct CodedRows {
  std::byte* to;
  const std::byte* from;
  const std::byte* scales;
  int scale_step;  // bytes from group to group
  int row_bytes;
  int smem_row;
  int pieces;  // of 16 bytes that a row has in shared memory
  int first;   // the rows that are seen, counted from 0; others become 0
  int last;
  int value_dim;  // of latents
};

// A chunk of 16 bytes of codes becomes two pieces of 16 bytes, of kInt4 four.
template <Element kElement>
__device__ __forceinline__ void widen_rows_of(const CodedRows& rows) {
  constexpr int kPieces = kCodePairs<kElement>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int all = rows.pieces / kPieces;
  const int each = all <= 8 ? 8 : all <= 16 ? 16 : 32;
#pragma unroll 1
  for (int row = lane / each; row < 8; row += 32 / each) {
    const bool seen = row >= rows.first && row <= rows.last;
#pragma unroll 1
    for (int chunk = lane % each; chunk < all; chunk += each) {
      uint4 codes = make_uint4(0, 0, 0, 0);
      __half scale = __ushort_as_half(0);
      if (seen && chunk * 16 < rows.row_bytes) {
        codes = *reinterpret_cast<const uint4*>(rows.from + row * rows.row_bytes + chunk * 16);
        const int group = kElement == Element::kInt4 ? chunk : 0;
        if constexpr (kv::memory::scale_bytes(kElement) > 0) {
          scale = reinterpret_cast<const __half*>(rows.scales + group * rows.scale_step)[row];
          // A latent of integers that is not finite has a NaN scale, which is 0 of its value.
          if (chunk * 8 * kPieces < rows.value_dim && __hisnan(scale)) scale = __ushort_as_half(0);
        }
      }
      uint4 pieces[kPieces];
      widen_chunk<kElement>(codes, scale, pieces);
      auto* const place =
          reinterpret_cast<uint4*>(rows.to + row * rows.smem_row + chunk * 16 * kPieces);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) place[i] = pieces[i];
    }
  }
}
// A function of its own: it would stand in a kernel as often as pieces are copied.
inline __noinline__ __device__ void widen_rows(CodedRows rows, Element element) {
  switch (element) {
    case Element::kE4M3:
      return widen_rows_of<Element::kE4M3>(rows);
    case Element::kE5M2:
      return widen_rows_of<Element::kE5M2>(rows);
    case Element::kInt8:
      return widen_rows_of<Element::kInt8>(rows);
    default:
      return widen_rows_of<Element::kInt4>(rows);
  }
}

// The pieces of a block's tiles of keys, in order: keys and values in turn, or latents. Each warp
// copies eight rows of every piece, all of one page.
template <int kSlots, bool kMayHaveCodes>
class PieceRing {
 public:
  __device__ __forceinline__ PieceRing(std::byte* data, const PagedAttention& job,
                                       const GeneralShape& shape, const QueryTile& rows,
                                       const KeyMask& mask, int first_tile, int tiles)
      : data_(data),
        job_(job),
        shape_(shape),
        rows_(rows),
        mask_(mask),
        tile_(first_tile),
        left_(shape.latent ? tiles : 2 * tiles) {
    shift_ = __ffs(static_cast<int>(job.pages.layout.block_tokens)) - 1;
    page_ = page_of(first_tile);
  }

  // The last key in the pieces that start() copies.
  __device__ __forceinline__ int last_key_of_first() const {
    const int tiles = shape_.latent ? kSlots - 1 : kSlots / 2;
    return (tile_ + tiles) * kGeneralTile - 1;
  }
  __device__ __forceinline__ void start() {
#pragma unroll
    for (int i = 0; i < kSlots - 1; ++i) copy_next();
  }
  // Waits for the next piece and begins to copy one into the place of the piece before it. All
  // threads call it; what they read and wrote before is done.
  __device__ __forceinline__ std::byte* take() {
    cp_async_wait<kSlots - 2>();
    __syncthreads();
    copy_next();
    std::byte* const piece = data_ + from_ * shape_.piece_bytes;
    from_ = from_ + 1 == kSlots ? 0 : from_ + 1;
    return piece;
  }

 private:
  // The page of this warp's rows of a tile: of a key that the table has.
  __device__ __forceinline__ std::uint32_t page_of(int tile) const {
    const int key = tile * kGeneralTile + static_cast<int>(threadIdx.x) / 32 * 8;
    const int known = min(max(key, mask_.first), mask_.last);
    return job_.pages
        .tables[rows_.sequence.table_index(static_cast<std::uint32_t>(known) >> shift_)];
  }
  __device__ __forceinline__ void copy_next() {
    if (left_ > 0) {
      copy_piece();
      --left_;
      if (shape_.latent || is_value_) {
        ++tile_;
        page_ = page_of(tile_);
      }
      is_value_ = !shape_.latent && !is_value_;
      to_ = to_ + 1 == kSlots ? 0 : to_ + 1;
    }
    cp_async_commit();
  }
  __device__ __forceinline__ void copy_piece() {
    const kv::memory::PageLayout& layout = job_.pages.layout;
    const std::uint32_t layer = job_.pages.layer;
    const int first = static_cast<int>(threadIdx.x) / 32 * 8;  // row of the tile
    const int key = tile_ * kGeneralTile + first;
    const auto token = static_cast<std::uint32_t>(key) & (layout.block_tokens - 1);
    const std::byte* const page = job_.pages.data + std::size_t{page_} * layout.page_bytes();
    const std::byte* const from =
        page + (is_value_ ? layout.value_offset(layer, rows_.kv_head, token)
                          : layout.key_offset(layer, rows_.kv_head, token));
    const int row_bytes =
        static_cast<int>(is_value_ ? layout.value_row_bytes() : layout.key_row_bytes());
    std::byte* const to = data_ + to_ * shape_.piece_bytes +
                          first * (is_value_ ? shape_.value_row_bytes : shape_.key_row_bytes);
    const std::byte* const scales =
        page + (is_value_ ? layout.value_scale_offset(layer, rows_.kv_head, token)
                          : layout.key_scale_offset(layer, rows_.kv_head, token));
    const Element element = is_value_ ? layout.elements.values : layout.elements.keys;
    if (kMayHaveCodes && has_codes(element)) {
      widen_rows({.to = to,
                  .from = from,
                  .scales = scales,
                  .scale_step = static_cast<int>(layout.scale_step()),
                  .row_bytes = row_bytes,
                  .smem_row = smem_row(),
                  .pieces = chunks(),
                  .first = mask_.first - key,
                  .last = mask_.last - key,
                  .value_dim = shape_.latent ? static_cast<int>(layout.value_dim) : 0},
                 element);
    } else {
      copy_rows(to, from, row_bytes, key);
    }
  }
  __device__ __forceinline__ bool is_seen(int key) const {
    return key >= mask_.first && key <= mask_.last;
  }
  // Chunks of 16 bytes that a row has in shared memory: dimensions beyond the last are zeros.
  __device__ __forceinline__ int chunks() const {
    return 2 * (is_value_ ? shape_.value_units : shape_.key_steps);
  }
  __device__ __forceinline__ int smem_row() const {
    return is_value_ ? shape_.value_row_bytes : shape_.key_row_bytes;
  }
  // Rows that nobody sees become 0, since their memory may hold anything.
  __device__ __forceinline__ void copy_rows(std::byte* to, const std::byte* from, int row_bytes,
                                            int key) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int all = chunks();
    const int each = all <= 8 ? 8 : all <= 16 ? 16 : 32;  // lanes of a row
    for (int row = lane / each; row < 8; row += 32 / each) {
      for (int chunk = lane % each; chunk < all; chunk += each) {
        const bool there = chunk * 16 < row_bytes && is_seen(key + row);
        cp_async_16(smem_address(to + row * smem_row() + chunk * 16),
                    there ? from + row * row_bytes + chunk * 16 : from, there ? 16 : 0);
      }
    }
  }
  std::byte* data_;
  const PagedAttention& job_;
  const GeneralShape& shape_;
  const QueryTile& rows_;
  const KeyMask& mask_;
  int tile_;  // whose piece is copied next
  int left_;  // pieces to copy
  int shift_;
  std::uint32_t page_;  // of this warp's rows of that tile
  bool is_value_ = false;
  int from_ = 0;  // slots of the ring
  int to_ = 0;
};

}  // namespace pagoda::kernels::cuda

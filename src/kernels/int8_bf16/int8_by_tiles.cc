// Exact integer GEMM of 16 rows of x and 16 outputs at a time by the matrix unit. Codes become
// limbs of weights, which serve all rows; every limb of x is multiplied with every limb of a
// weight, 64 columns at a time, products of one place value in one tile. Nothing is scaled before
// the end.
//
// The vector units work beside the matrix unit: while it multiplies, the sums it left before become
// outputs, and codes it needs later become limbs.
#include "kernels/int8_bf16/amx_tile.h"
#include "kernels/int8_bf16/int8_format.h"
#include "kernels/int8_bf16/int8_matmul.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

constexpr std::size_t kTileBytes = 1024;

// Digits of weights that are kept while all rows of x pass by: what the second-level cache likes.
constexpr std::size_t kLimbBytesTogether = std::size_t{256} << 10;

// Half of the codes of a row tile and one group of columns: its lines of each limb, kTileBytes
// apart, highest first.
template <class Format, std::size_t Half>
[[gnu::always_inline]] inline void unpack_half(const PackedFormat& format, PackedTile tile,
                                               std::byte* out) {
  const Words16 scales = Format::scales(tile, Half);
  const Words16 zero_points = Format::zero_points(format, tile, scales);
  const auto split = [&](const Codes64& codes, std::size_t line) {
    std::byte* const place = out + line * kLineBytes;
    if constexpr (Format::kWide) {
      split_wide_line(codes, scales, place, place + kTileBytes, place + 2 * kTileBytes);
    } else {
      split_line(codes, scales, zero_points, place, place + kTileBytes);
    }
  };
  if constexpr (Format::kNibbles) {
    PAGODA_ISA_UNROLL for (std::size_t line = 2 * Half; line < 2 * Half + 2; ++line) {
      const Codes64 both = load_codes(tile.codes + line * kLineBytes);
      split(low_nibbles(both), line);
      split(high_nibbles(both), 4 + line);
    }
  } else {
    PAGODA_ISA_UNROLL for (std::size_t line = 4 * Half; line < 4 * Half + 4; ++line) {
      split(load_codes(tile.codes + line * kLineBytes), line);
    }
  }
}

template <class Format>
inline constexpr std::size_t kKBlockBytes = Format::kLimbs* kTileBytes;

// Row tiles [begin, end) on their way from codes to limbs, k_block after k_block. Digits stand in a
// ring of k_blocks: [limb] tiles each. Where a row has an odd number of groups the second half of
// its last k_block stays as it was: it is multiplied with zeros.
template <class Format>
class Unpacking {
 public:
  // Stores are done before what they wrote is loaded as a tile.
  static constexpr std::size_t kBlocksAhead = 3;

  Unpacking(const PackedWeight& weight, std::size_t begin, std::size_t end, std::byte* ring,
            std::size_t ring_k_blocks)
      : weight_(weight),
        row_tile_(begin),
        end_(end),
        ring_(ring),
        ring_end_(ring + ring_k_blocks * kKBlockBytes<Format>),
        place_(ring) {
    for (std::size_t k_block = 0; k_block < kBlocksAhead; ++k_block) {
      unpack_quarter<0>();
      unpack_quarter<1>();
      unpack_quarter<2>();
      unpack_quarter<3>();
    }
  }

  std::byte* first() const { return ring_; }
  // Moves a place to the next K block.
  template <class Byte>
  [[gnu::always_inline]] Byte* after(Byte* place) const {
    place += kKBlockBytes<Format>;
    return place == ring_end_ ? ring_ : place;
  }

  // One of the four quarters of the next k_block, if there is one: half of a group.
  template <std::size_t Quarter>
  [[gnu::always_inline]] void unpack_quarter() {
    if (row_tile_ == end_) return;
    const std::size_t group = group_ + Quarter / 2;
    if (group < weight_.groups) {
      if constexpr (Quarter % 2 == 0) weight_.prefetch_later_rows(row_tile_, group);
      unpack_half<Format, Quarter % 2>(weight_.format, weight_.tile(row_tile_, group),
                                       place_ + Quarter / 2 * (kTileBytes / 2));
    }
    if constexpr (Quarter < 3) return;
    place_ = after(place_);
    group_ += 2;
    if (group_ < weight_.groups) return;
    group_ = 0;
    ++row_tile_;
  }

 private:
  const PackedWeight& weight_;
  std::size_t row_tile_;
  std::size_t end_;
  std::byte* ring_;
  std::byte* ring_end_;
  std::byte* place_;
  std::size_t group_ = 0;
};

// Tile registers: sums 0-3, limbs of x 4 and 5, limbs of weights 6 and 7.
AmxTileConfig shapes_for(std::size_t rows) {
  AmxTileConfig shapes;
  for (const int tile : {0, 1, 2, 3, 4, 5}) shapes.set(tile, {static_cast<std::uint8_t>(rows), 64});
  for (const int right : {6, 7}) shapes.set(right, {16, 64});
  return shapes;
}

// The factors of one K block: 64 columns of rows of x and of a row tile.
struct LimbTiles {
  const std::byte* x;
  const std::byte* weights;

  [[gnu::always_inline]] void load_x_high() const { tile_load<4>(x, sizeof(Int8Limbs)); }
  [[gnu::always_inline]] void load_x_low() const { tile_load<5>(x + kBlockK, sizeof(Int8Limbs)); }
  template <int Tile, std::size_t Limb>
  [[gnu::always_inline]] void load_weights() const {
    tile_load<Tile>(weights + Limb * kTileBytes, kLineBytes);
  }
};

// Sums of one k_block by place value. Two limbs: tile 0 high x high, 1 and 2 the mixed ones, 3 low
// x low; three: tiles 0 to 3 in falling order.
//
// A register is filled for the next k_block as soon as nobody needs what it has, and the vector
// units get their work in small parts in between: products find their factors loaded and the other
// units busy also on a core whose two threads share what reorders instructions.
template <class Format, bool kLast>
[[gnu::always_inline]] inline void multiply_k_block(const LimbTiles& now, const LimbTiles& next,
                                                    Unpacking<Format>& unpacking) {
  tile_dpbssd<0, 4, 6>();
  unpacking.template unpack_quarter<0>();
  tile_dpbsud<1, 4, 7>();
  if constexpr (Format::kWide) {
    tile_dpbsud<2, 5, 7>();
    now.load_weights<7, 2>();
    unpacking.template unpack_quarter<1>();
    tile_dpbssd<1, 5, 6>();
    if constexpr (!kLast) next.load_weights<6, 0>();
    unpacking.template unpack_quarter<2>();
    tile_dpbsud<3, 5, 7>();
    if constexpr (!kLast) next.load_x_low();
    tile_dpbsud<2, 4, 7>();
    if constexpr (!kLast) next.load_x_high();
  } else {
    if constexpr (!kLast) next.load_x_high();
    unpacking.template unpack_quarter<1>();
    tile_dpbssd<2, 5, 6>();
    if constexpr (!kLast) next.load_weights<6, 0>();
    unpacking.template unpack_quarter<2>();
    tile_dpbsud<3, 5, 7>();
    if constexpr (!kLast) next.load_x_low();
  }
  if constexpr (!kLast) next.load_weights<7, 1>();
  unpacking.template unpack_quarter<3>();
}

// The sums that the matrix unit computed for some rows and one row tile, by place value of the
// limbs.
template <class Format>
struct TileSums {
  alignas(64) std::byte tiles[4][kTileBytes];
  std::size_t first_row = 0;
  std::size_t rows = 0;
  std::size_t row_tile = 0;

  // Converts the sums of one row to floats.
  [[gnu::always_inline]] F32x16 floats(std::size_t row) const {
    const I32x16 a = load_sums(tiles[0] + row * kLineBytes);
    const I32x16 b = load_sums(tiles[1] + row * kLineBytes);
    const I32x16 c = load_sums(tiles[2] + row * kLineBytes);
    const I32x16 d = load_sums(tiles[3] + row * kLineBytes);
    if constexpr (Format::kWide) {
      return floats_of(a + shift_right<8>(b + shift_right<8>(c + shift_right<8>(d))),
                       shift_left<16>(b) + shift_left<8>(c) + d);
    } else {
      const I32x16 mixed = b + c;
      return floats_of(shift_right<8>(a + shift_right<8>(mixed + shift_right<8>(d))),
                       shift_left<16>(a) + shift_left<8>(mixed) + d);
    }
  }
};

// Tiles multiplied one after the other, row tile after row tile, as their limbs stand in the ring.
template <class Format>
class TileProducts {
 public:
  TileProducts(const Matmul& job, const PackedWeight& weight, Unpacking<Format>& unpacking)
      : job_(job),
        weight_(weight),
        unpacking_(unpacking),
        limbs_(unpacking.first()),
        k_blocks_((weight.groups + 1) / 2),
        rows_per_k_block_((kTileRows + k_blocks_ - 1) / k_blocks_) {}

  // Rows [first_row, first_row + rows) of x, at most 16, with one row tile.
  void multiply(std::size_t first_row, std::size_t rows, std::size_t row_tile) {
    TileSums<Format>& sums = sums_[turn_ % 2];
    tile_zero<0>();
    tile_zero<1>();
    tile_zero<2>();
    tile_zero<3>();
    std::size_t done = 0;
    LimbTiles now = {LimbRows(job_, first_row).limbs, limbs_};
    now.load_x_high();
    now.load_weights<6, 0>();
    now.load_weights<7, 1>();
    now.load_x_low();
    for (std::size_t k_block = 1; k_block < k_blocks_; ++k_block) {
      const LimbTiles next = {now.x + ActivationLayout::kLimbsStride,
                              unpacking_.after(now.weights)};
      multiply_k_block<Format, false>(now, next, unpacking_);
      done = put_some(done);
      now = next;
    }
    multiply_k_block<Format, true>(now, now, unpacking_);
    put_some(done);
    limbs_ = unpacking_.after(now.weights);
    tile_store<0>(sums.tiles[0], kLineBytes);
    tile_store<1>(sums.tiles[1], kLineBytes);
    tile_store<2>(sums.tiles[2], kLineBytes);
    tile_store<3>(sums.tiles[3], kLineBytes);
    sums.first_row = first_row;
    sums.rows = rows;
    sums.row_tile = row_tile;
    ++turn_;
  }

  // Outputs of what was multiplied last.
  void finish() {
    for (std::size_t done = 0; done < kTileRows;) done = put_some(done);
  }

 private:
  // A few rows of the tile before, from `done` on; returns where to go on.
  [[gnu::always_inline]] std::size_t put_some(std::size_t done) const {
    const TileSums<Format>& sums = sums_[(turn_ + 1) % 2];
    const std::size_t end =
        done + rows_per_k_block_ < sums.rows ? done + rows_per_k_block_ : sums.rows;
    const LimbRows x(job_, sums.first_row);
    for (std::size_t row = done; row < end; ++row) {
      put_sums(job_, weight_, sums.first_row + row, x.scale_of(row), sums.row_tile,
               sums.floats(row));
    }
    return done + rows_per_k_block_;
  }

  const Matmul& job_;
  const PackedWeight& weight_;
  Unpacking<Format>& unpacking_;
  const std::byte* limbs_;  // of the next row tile
  std::size_t k_blocks_;
  std::size_t rows_per_k_block_;
  std::size_t turn_ = 0;
  TileSums<Format> sums_[2];
};

// Multiplies all rows with row tiles [begin, end), 16 rows after 16 rows. The first 16 find the
// limbs they need just unpacked, the others in the ring, which has room for all.
template <class Format>
void multiply_part(const Matmul& job, const PackedWeight& weight, std::size_t rows,
                   std::size_t begin, std::size_t end, std::byte* ring, std::size_t ring_k_blocks) {
  Unpacking<Format> unpacking(weight, begin, end, ring, ring_k_blocks);
  TileScope scope;
  TileProducts<Format> products(job, weight, unpacking);
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t count = rows - row < kTileRows ? rows - row : kTileRows;
    if (row == 0 || count < kTileRows) scope.use(shapes_for(count));
    for (std::size_t row_tile = begin; row_tile < end; ++row_tile) {
      products.multiply(row, count, row_tile);
    }
  }
  products.finish();
}

// Row tiles whose limbs are kept together.
std::size_t tiles_together(std::size_t tile_bytes) {
  const std::size_t fit = kLimbBytesTogether / tile_bytes;
  return fit < 1 ? 1 : fit < int8_bf16::kTilesTogether ? fit : int8_bf16::kTilesTogether;
}

// GroupScales in the ring where 16 rows of x need them once.
constexpr std::size_t kShortRing = 4;

}  // namespace

std::size_t by_tiles_scratch(std::size_t columns) {
  std::size_t most = kShortRing * 3 * kTileBytes;
  for (const std::size_t limbs : {2, 3}) {
    const std::size_t tile_bytes = k_blocks_of(columns) * limbs * kTileBytes;
    const std::size_t bytes = tiles_together(tile_bytes) * tile_bytes;
    most = bytes > most ? bytes : most;
  }
  return most;
}

void multiply_by_tiles(const Matmul& job, const PackedWeight& weight, std::size_t rows,
                       std::size_t begin, std::size_t end, std::byte* scratch) {
  with_int8_format(weight.format, [&]<class Format>(Format) {
    if (rows <= kTileRows) {
      return multiply_part<Format>(job, weight, rows, begin, end, scratch, kShortRing);
    }
    const std::size_t k_blocks = k_blocks_of(weight.groups * kGroupColumns);
    const std::size_t together = tiles_together(k_blocks * kKBlockBytes<Format>);
    for (std::size_t part = begin; part < end; part += together) {
      const std::size_t part_end = end - part < together ? end : part + together;
      multiply_part<Format>(job, weight, rows, part, part_end, scratch,
                            (part_end - part) * k_blocks);
    }
  });
}

}  // namespace pagoda::kernels::PAGODA_ISA

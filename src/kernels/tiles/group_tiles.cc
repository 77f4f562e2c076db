// Group sums of up to 16 rows of x and 16 outputs by the matrix unit, a product of two tiles for
// each group of columns. It leaves 16 x 16 integers in memory; they are scaled and added to the
// sums while the next group is multiplied.
//
//   nibbles   both digits of x lie side by side (64 bytes of a GroupDigits), and so do 16 times the
//             codes and the codes: one product joins the digits.
//   bytes     16 times a code needs more than a byte: a product for each digit.
#include "kernels/tiles/group_format.h"
#include "kernels/tiles/group_matmul.h"
#include "kernels/tiles/tile.h"

namespace pagoda::kernels::PAGODA_TILE_SET {
namespace {

constexpr std::size_t kTileBytes = 1024;

// The right-hand side of nibbles: lines 0-7 are 16 times the codes of columns 0-31, lines 8-15 the
// codes.
[[gnu::always_inline]] inline void unpack_nibbles(const std::byte* codes, std::byte* out) {
  PAGODA_TILE_UNROLL for (std::size_t line = 0; line < 4; ++line) {
    const Codes64 both = load_codes(codes + line * kLineBytes);
    store_codes(out + line * kLineBytes, low_nibbles_16(both));
    store_codes(out + (4 + line) * kLineBytes, high_nibbles_16(both));
    store_codes(out + (8 + line) * kLineBytes, low_nibbles(both));
    store_codes(out + (12 + line) * kLineBytes, high_nibbles(both));
  }
}

// Right-hand sides that are unpacked when their turn comes, …
template <class Format>
struct UnpackedNow {
  const PackedWeight& weight;
  std::byte* room;  // [2] tiles

  [[gnu::always_inline]] const std::byte* side(std::size_t row_tile, std::size_t step) const {
    weight.prefetch(row_tile, step, 1);
    const std::byte* const codes = weight.tile(row_tile, step).codes;
    if constexpr (!Format::kNibbles) return codes;
    std::byte* const out = room + step % 2 * kTileBytes;
    unpack_nibbles(codes, out);
    return out;
  }
};

// … and those that were unpacked before: [row tile][step].
struct UnpackedBefore {
  const std::byte* sides;
  std::size_t first_row_tile;
  std::size_t steps;

  [[gnu::always_inline]] const std::byte* side(std::size_t row_tile, std::size_t step) const {
    return sides + ((row_tile - first_row_tile) * steps + step) * kTileBytes;
  }
};

// Tile registers: sums 0-3, left-hand sides 4 and 5, right-hand sides 6 and 7.
template <class Format>
TileShapes shapes_for(std::size_t rows) {
  constexpr int kColumnBytes = Format::kNibbles ? 64 : 32 / Format::kGroups;
  TileShapes shapes;
  for (const int sum : {0, 1, 2, 3}) shapes.set(sum, {static_cast<std::uint8_t>(rows), 64});
  for (const int left : {4, 5}) {
    shapes.set(left, {static_cast<std::uint8_t>(rows), static_cast<std::uint8_t>(kColumnBytes)});
  }
  for (const int right : {6, 7}) shapes.set(right, {kColumnBytes / 4, 64});
  return shapes;
}

// The integers of one step: for each group of codes one tile, or one for each digit.
template <class Format>
struct StepProducts {
  static constexpr int kDigits = Format::kNibbles ? 1 : 2;
  alignas(64) std::byte bytes[Format::kGroups * kDigits][kTileBytes];

  [[gnu::always_inline]] F32x16 of(int group, std::size_t row) const {
    const std::byte* const first = bytes[group * kDigits] + row * kLineBytes;
    if constexpr (Format::kNibbles) return to_floats(load_sums(first));
    return joined(load_sums(first), load_sums(first + kTileBytes));
  }

  template <int Tile, int Right>
  [[gnu::always_inline]] void multiply_one(const std::byte* x, std::size_t stride, int place) {
    tile_zero<Tile>();
    tile_load<4 + Tile % 2>(x, stride);
    tile_byte_product<Tile, 4 + Tile % 2, Right>();
    tile_store<Tile>(bytes[place], kLineBytes);
  }
  // `Turn`: steps that follow each other use registers of their own.
  template <int Turn>
  [[gnu::always_inline]] void multiply(const std::byte* digits, std::size_t stride,
                                       const std::byte* side) {
    tile_load<6 + Turn>(side, kLineBytes);
    if constexpr (Format::kNibbles) {
      multiply_one<Turn, 6 + Turn>(digits, stride, 0);
    } else {
      multiply_one<2 * Turn, 6 + Turn>(digits, stride, 0);
      multiply_one<2 * Turn + 1, 6 + Turn>(digits + kGroup, stride, 1);
    }
    if constexpr (Format::kGroups == 2) {
      tile_load<7 - Turn>(side + 4 * kLineBytes, kLineBytes);
      multiply_one<2 - 2 * Turn, 7 - Turn>(digits + 16, stride, 2);
      multiply_one<3 - 2 * Turn, 7 - Turn>(digits + kGroup + 16, stride, 3);
    }
  }
};

// Rows [first_row, first_row + rows) of x with one row tile. AllRows: they are 16, and their sums
// stay in registers.
template <class Format, bool AllRows, class Sides>
void multiply_tile(const Matmul& job, const PackedWeight& weight, const Sides& sides,
                   std::size_t first_row, std::size_t row_count, std::size_t row_tile) {
  const DigitRows x(job, first_row);
  const std::size_t rows = AllRows ? kTileRows : row_count;
  StepProducts<Format> products[2];
  F32x16 sums[kTileRows];
  PAGODA_TILE_UNROLL for (std::size_t r = 0; r < kTileRows; ++r) sums[r] = broadcast(0);
  const auto multiply = [&](std::size_t step) {
    const std::byte* const digits = x.digits + step * sizeof(GroupDigits);
    const std::byte* const side = sides.side(row_tile, step);
    if (step % 2 == 0) {
      products[0].template multiply<0>(digits, x.stride, side);
    } else {
      products[1].template multiply<1>(digits, x.stride, side);
    }
  };
  multiply(0);
  for (std::size_t step = 0; step < weight.steps; ++step) {
    if (step + 1 < weight.steps) multiply(step + 1);
    const StepProducts<Format>& ready = products[step % 2];
    const PackedTile tile = weight.tile(row_tile, step);
    PAGODA_TILE_UNROLL for (int group = 0; group < Format::kGroups; ++group) {
      const GroupFactors factors = Format::factors(weight.format, tile, group);
      PAGODA_TILE_UNROLL for (std::size_t r = 0; r < rows; ++r) {
        sums[r] =
            add_group<Format>(sums[r], ready.of(group, r), factors, x.scales_of(r, step), group);
      }
    }
  }
  PAGODA_TILE_UNROLL for (std::size_t r = 0; r < rows; ++r)
      put_sum(job, first_row + r, row_tile, sums[r]);
}

// 16 rows or fewer: each right-hand side is used once.
template <class Format>
void multiply_few(const Matmul& job, const PackedWeight& weight, std::size_t rows,
                  std::size_t begin, std::size_t end, std::byte* scratch) {
  TileScope scope;
  scope.use(shapes_for<Format>(rows));
  const UnpackedNow<Format> sides = {weight, scratch};
  for (std::size_t row_tile = begin; row_tile < end; ++row_tile) {
    if (rows == kTileRows) {
      multiply_tile<Format, true>(job, weight, sides, 0, rows, row_tile);
    } else {
      multiply_tile<Format, false>(job, weight, sides, 0, rows, row_tile);
    }
  }
}

template <class Format, class Sides>
void multiply_part(const Matmul& job, const PackedWeight& weight, const Sides& sides,
                   std::size_t rows, std::size_t begin, std::size_t end) {
  TileScope scope;
  scope.use(shapes_for<Format>(kTileRows));
  const std::size_t whole = rows / kTileRows * kTileRows;
  for (std::size_t row = 0; row < whole; row += kTileRows) {
    for (std::size_t row_tile = begin; row_tile < end; ++row_tile) {
      multiply_tile<Format, true>(job, weight, sides, row, kTileRows, row_tile);
    }
  }
  if (whole == rows) return;
  scope.use(shapes_for<Format>(rows - whole));
  for (std::size_t row_tile = begin; row_tile < end; ++row_tile) {
    multiply_tile<Format, false>(job, weight, sides, whole, rows - whole, row_tile);
  }
}

// A few row tiles are unpacked and serve all rows.
template <class Format>
void multiply_many(const Matmul& job, const PackedWeight& weight, std::size_t rows,
                   std::size_t begin, std::size_t end, std::byte* scratch) {
  for (std::size_t part = begin; part < end; part += tiles::kTilesTogether) {
    const std::size_t part_end =
        end - part < tiles::kTilesTogether ? end : part + tiles::kTilesTogether;
    if constexpr (!Format::kNibbles) {
      multiply_part<Format>(job, weight, UnpackedNow<Format>{weight, nullptr}, rows, part,
                            part_end);
    } else {
      for (std::size_t row_tile = part; row_tile < part_end; ++row_tile) {
        for (std::size_t step = 0; step < weight.steps; ++step) {
          unpack_nibbles(weight.tile(row_tile, step).codes,
                         scratch + ((row_tile - part) * weight.steps + step) * kTileBytes);
        }
      }
      multiply_part<Format>(job, weight, UnpackedBefore{scratch, part, weight.steps}, rows, part,
                            part_end);
    }
  }
}

}  // namespace

std::size_t tiles_scratch(std::size_t columns) {
  return (tiles::kTilesTogether * groups_of(columns) + 2) * kTileBytes;
}

void multiply_by_tiles(const Matmul& job, const PackedWeight& weight, std::size_t rows,
                       std::size_t begin, std::size_t end, std::byte* scratch) {
  with_group_format(weight.format, [&]<class Format>(Format) {
    if (rows <= kTileRows) return multiply_few<Format>(job, weight, rows, begin, end, scratch);
    multiply_many<Format>(job, weight, rows, begin, end, scratch);
  });
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET

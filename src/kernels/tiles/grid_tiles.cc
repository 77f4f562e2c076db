// Grid sums of 16 rows of x and 16 outputs at a time by the matrix unit. Codes become digits of
// weights, which serve all rows; every digit of x is multiplied with every digit of a weight, 64
// columns at a time, products of one place value in one tile. Nothing is scaled before the end.
#include "kernels/tiles/grid_format.h"
#include "kernels/tiles/grid_matmul.h"
#include "kernels/tiles/tile.h"

namespace pagoda::kernels::PAGODA_TILE_SET {
namespace {

constexpr std::size_t kTileBytes = 1024;

// Digits of weights that are kept while all rows of x pass by: what the second-level cache likes.
constexpr std::size_t kDigitBytesTogether = std::size_t{256} << 10;

// One group of columns of a row tile: its lines of each digit, kTileBytes apart, highest first.
template <class Format>
[[gnu::always_inline]] inline void unpack_group(const PackedFormat& format, PackedTile tile,
                                                std::byte* out) {
  const Words32 steps[2] = {Format::steps_twice(tile, 0), Format::steps_twice(tile, 1)};
  const Words32 offsets[2] = {Format::offsets_twice(format, tile, steps[0]),
                              Format::offsets_twice(format, tile, steps[1])};
  const auto split = [&](const Codes64& codes, std::size_t line) {
    std::byte* const place = out + line * kLineBytes;
    if constexpr (Format::kWide) {
      split_wide_line(codes, steps[0], place, place + kTileBytes, place + 2 * kTileBytes);
    } else {
      split_line(codes, steps[line / 4], offsets[line / 4], place, place + kTileBytes);
    }
  };
  if constexpr (Format::kNibbles) {
    PAGODA_TILE_UNROLL for (std::size_t line = 0; line < 4; ++line) {
      const Codes64 both = load_codes(tile.codes + line * kLineBytes);
      split(low_nibbles(both), line);
      split(high_nibbles(both), 4 + line);
    }
  } else {
    PAGODA_TILE_UNROLL for (std::size_t line = 0; line < 8; ++line) {
      split(load_codes(tile.codes + line * kLineBytes), line);
    }
  }
}

// A row tile: [step][digit] tiles. With an odd number of groups the second half of the last step
// stays as it was: it is multiplied with zeros.
template <class Format>
void unpack_row_tile(const PackedWeight& weight, std::size_t row_tile, std::byte* out) {
  for (std::size_t group = 0; group < weight.groups; ++group) {
    weight.prefetch(row_tile, group, 1);
    unpack_group<Format>(weight.format, weight.tile(row_tile, group),
                         out + group / 2 * Format::kDigits * kTileBytes + group % 2 * 512);
  }
}

// Tile registers: sums 0-3, digits of x 4 and 5, digits of weights 6 and 7.
TileShapes shapes_for(std::size_t rows) {
  TileShapes shapes;
  for (const int tile : {0, 1, 2, 3, 4, 5}) shapes.set(tile, {static_cast<std::uint8_t>(rows), 64});
  for (const int right : {6, 7}) shapes.set(right, {16, 64});
  return shapes;
}

// Sums of one step by place value. Two digits: tile 0 high x high, 1 and 2 the mixed ones, 3 low x
// low; three: tiles 0 to 3 in falling order. No product waits for the one before it.
template <class Format>
[[gnu::always_inline]] inline void multiply_step(const std::byte* digits, std::size_t stride,
                                                 const std::byte* weights) {
  tile_load<4>(digits, stride);
  tile_load<6>(weights, kLineBytes);
  tile_signed_product<0, 4, 6>();
  tile_load<7>(weights + kTileBytes, kLineBytes);
  tile_unsigned_product<1, 4, 7>();
  tile_load<5>(digits + kStep, stride);
  if constexpr (Format::kWide) {
    tile_unsigned_product<2, 5, 7>();
    tile_signed_product<1, 5, 6>();
    tile_load<6>(weights + 2 * kTileBytes, kLineBytes);
    tile_unsigned_product<3, 5, 6>();
    tile_unsigned_product<2, 4, 6>();
  } else {
    tile_signed_product<2, 5, 6>();
    tile_unsigned_product<3, 5, 7>();
  }
}

// The sums of one row as floats.
template <class Format>
[[gnu::always_inline]] inline F32x16 floats_of_tiles(const std::byte (&tiles)[4][kTileBytes],
                                                     std::size_t row) {
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

// Rows [first_row, first_row + rows) of x, at most 16, with one row tile.
template <class Format, bool AllRows>
void multiply_tile(const Matmul& job, const PackedWeight& weight, const std::byte* digits,
                   std::size_t first_row, std::size_t row_count, std::size_t row_tile) {
  const DigitRows x(job, first_row);
  const std::size_t rows = AllRows ? kTileRows : row_count;
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  for (std::size_t step = 0; step < (weight.groups + 1) / 2; ++step) {
    multiply_step<Format>(x.digits + step * sizeof(StepDigits), x.stride,
                          digits + step * Format::kDigits * kTileBytes);
  }
  alignas(64) std::byte sums[4][kTileBytes];
  tile_store<0>(sums[0], kLineBytes);
  tile_store<1>(sums[1], kLineBytes);
  tile_store<2>(sums[2], kLineBytes);
  tile_store<3>(sums[3], kLineBytes);
  PAGODA_TILE_UNROLL for (std::size_t r = 0; r < rows; ++r) {
    put_sums(job, weight, first_row + r, x.scale_of(r), row_tile, floats_of_tiles<Format>(sums, r));
  }
}

// All rows with row tiles [begin, end), whose digits are unpacked, `tile_bytes` each.
template <class Format>
void multiply_part(const Matmul& job, const PackedWeight& weight, std::size_t rows,
                   std::size_t begin, std::size_t end, const std::byte* digits,
                   std::size_t tile_bytes) {
  TileScope scope;
  const std::size_t whole = rows / kTileRows * kTileRows;
  if (whole > 0) scope.use(shapes_for(kTileRows));
  for (std::size_t row = 0; row < whole; row += kTileRows) {
    for (std::size_t row_tile = begin; row_tile < end; ++row_tile) {
      multiply_tile<Format, true>(job, weight, digits + (row_tile - begin) * tile_bytes, row,
                                  kTileRows, row_tile);
    }
  }
  if (whole == rows) return;
  scope.use(shapes_for(rows - whole));
  for (std::size_t row_tile = begin; row_tile < end; ++row_tile) {
    multiply_tile<Format, false>(job, weight, digits + (row_tile - begin) * tile_bytes, whole,
                                 rows - whole, row_tile);
  }
}

// Row tiles whose digits are kept together.
std::size_t tiles_together(std::size_t tile_bytes) {
  const std::size_t fit = kDigitBytesTogether / tile_bytes;
  return fit < 1 ? 1 : fit < tiles::kTilesTogether ? fit : tiles::kTilesTogether;
}

}  // namespace

std::size_t tiles_scratch(std::size_t columns) {
  std::size_t most = 0;
  for (const std::size_t digits : {2, 3}) {
    const std::size_t tile_bytes = steps_of(columns) * digits * kTileBytes;
    const std::size_t bytes = tiles_together(tile_bytes) * tile_bytes;
    most = bytes > most ? bytes : most;
  }
  return most;
}

void multiply_by_tiles(const Matmul& job, const PackedWeight& weight, std::size_t rows,
                       std::size_t begin, std::size_t end, std::byte* scratch) {
  with_grid_format(weight.format, [&]<class Format>(Format) {
    const std::size_t tile_bytes = (weight.groups + 1) / 2 * Format::kDigits * kTileBytes;
    const std::size_t together = tiles_together(tile_bytes);
    for (std::size_t part = begin; part < end; part += together) {
      const std::size_t part_end = end - part < together ? end : part + together;
      for (std::size_t row_tile = part; row_tile < part_end; ++row_tile) {
        unpack_row_tile<Format>(weight, row_tile, scratch + (row_tile - part) * tile_bytes);
      }
      multiply_part<Format>(job, weight, rows, part, part_end, scratch, tile_bytes);
    }
  });
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET

// Group sums of a few rows of x at a time: 16 outputs are the lanes, and what is unpacked serves
// all rows. Both digits of x are multiplied with the same codes and joined at the end of a group.
#include "kernels/tiles/group_format.h"
#include "kernels/tiles/group_matmul.h"

namespace pagoda::kernels::PAGODA_TILE_SET {
namespace {

constexpr int kRowsTogether = 4;

// Products of the digits of each row with one group of codes, as floats.
template <class Format, int Rows>
struct GroupProducts {
  I32x16 high[Rows];
  I32x16 low[Rows];

  [[gnu::always_inline]] GroupProducts() {
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) high[r] = low[r] = no_sums();
  }
  // One line of codes with columns [column, column + 4).
  [[gnu::always_inline]] void add(const Codes64& codes, const DigitRows& x, std::size_t step,
                                  int column) {
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      const GroupDigits& digits = x.digits_of(static_cast<std::size_t>(r), step);
      high[r] = add_products(high[r], codes, digits.high + column);
      low[r] = add_products(low[r], codes, digits.low + column);
    }
  }
  [[gnu::always_inline]] void add_codes(const std::byte* codes, const DigitRows& x,
                                        std::size_t step, int group) {
    if constexpr (Format::kNibbles) {
      PAGODA_TILE_UNROLL for (int line = 0; line < 4; ++line) {
        const Codes64 both = load_codes(codes + line * kLineBytes);
        add(low_nibbles(both), x, step, 4 * line);
        add(high_nibbles(both), x, step, 16 + 4 * line);
      }
    } else {
      constexpr int kLines = 8 / Format::kGroups;
      PAGODA_TILE_UNROLL for (int line = 0; line < kLines; ++line) {
        const int place = group * kLines + line;
        add(load_codes(codes + place * kLineBytes), x, step, 4 * place);
      }
    }
  }
};

template <class Format, int Rows, int RowTiles>
void multiply(const Matmul& job, const PackedWeight& weight, std::size_t first_row,
              std::size_t row_tile) {
  const DigitRows x(job, first_row);
  F32x16 sums[RowTiles][Rows];
  PAGODA_TILE_UNROLL for (int t = 0; t < RowTiles; ++t) {
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) sums[t][r] = broadcast(0);
  }
  for (std::size_t step = 0; step < weight.steps; ++step) {
    weight.prefetch(row_tile, step, RowTiles);
    PAGODA_TILE_UNROLL for (int t = 0; t < RowTiles; ++t) {
      const PackedTile tile = weight.tile(row_tile + static_cast<std::size_t>(t), step);
      PAGODA_TILE_UNROLL for (int group = 0; group < Format::kGroups; ++group) {
        GroupProducts<Format, Rows> products;
        products.add_codes(tile.codes, x.read_again(), step, group);
        const GroupFactors factors = Format::factors(weight.format, tile, group);
        PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
          sums[t][r] =
              add_group<Format>(sums[t][r], joined(products.high[r], products.low[r]), factors,
                                x.scales_of(static_cast<std::size_t>(r), step), group);
        }
      }
    }
  }
  PAGODA_TILE_UNROLL for (int t = 0; t < RowTiles; ++t) {
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      put_sum(job, first_row + static_cast<std::size_t>(r), row_tile + static_cast<std::size_t>(t),
              sums[t][r]);
    }
  }
}

template <class Format, int Rows>
void multiply_rows(const Matmul& job, const PackedWeight& weight, std::size_t first_row,
                   std::size_t begin, std::size_t end) {
  std::size_t row_tile = begin;
  for (; row_tile + 4 <= end; row_tile += 4) {
    multiply<Format, Rows, 4>(job, weight, first_row, row_tile);
  }
  if (row_tile + 2 <= end) {
    multiply<Format, Rows, 2>(job, weight, first_row, row_tile);
    row_tile += 2;
  }
  if (row_tile < end) multiply<Format, Rows, 1>(job, weight, first_row, row_tile);
}

}  // namespace

// Four row tiles at a time for all rows of x: they stay in the first-level cache meanwhile.
void multiply_by_rows(const Matmul& job, const PackedWeight& weight, std::size_t first_row,
                      std::size_t begin, std::size_t end) {
  with_group_format(weight.format, [&]<class Format>(Format) {
    for (std::size_t part = begin; part < end; part += tiles::kTilesTogether) {
      const std::size_t part_end =
          end - part < tiles::kTilesTogether ? end : part + tiles::kTilesTogether;
      std::size_t row = first_row;
      for (; row + kRowsTogether <= job.rows; row += kRowsTogether) {
        multiply_rows<Format, kRowsTogether>(job, weight, row, part, part_end);
      }
      switch (job.rows - row) {
        case 3:
          multiply_rows<Format, 3>(job, weight, row, part, part_end);
          break;
        case 2:
          multiply_rows<Format, 2>(job, weight, row, part, part_end);
          break;
        case 1:
          multiply_rows<Format, 1>(job, weight, row, part, part_end);
          break;
        default:
          break;
      }
    }
  });
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET

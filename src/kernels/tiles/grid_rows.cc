// Grid sums of a few rows of x at a time: 16 outputs are the lanes, and what is unpacked serves all
// rows. Codes are multiplied with the digits of x; a group's sums are multiplied with its steps.
#include "kernels/tiles/grid_format.h"
#include "kernels/tiles/grid_matmul.h"

namespace pagoda::kernels::PAGODA_TILE_SET {
namespace {

// So many groups of nibbles can be summed in 32 bits: 2^7 * 2^15 * 32 * 16 = 2^31.
constexpr std::size_t kGroupsIn32Bits = 16;

// Nibbles: 16 products of a code and a digit fit into a word, and a few groups of them, multiplied
// with their steps, into 32 bits.
template <class Format, int Rows, int RowTiles>
struct NibbleSums {
  DigitRows x;
  I32x16 high[RowTiles][Rows];
  I32x16 low[RowTiles][Rows];
  I64x16 total[RowTiles][Rows];

  [[gnu::always_inline]] explicit NibbleSums(const DigitRows& rows) : x(rows) {
    PAGODA_TILE_UNROLL for (int t = 0; t < RowTiles; ++t) {
      PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
        high[t][r] = low[t][r] = no_sums();
        total[t][r] = no_wide_sums();
      }
    }
  }

  [[gnu::always_inline]] void begin_group(std::size_t) {}

  [[gnu::always_inline]] void add(const PackedFormat& format, PackedTile tile, std::size_t group,
                                  int t) {
    x.digits = read_again(x.digits);
    // High digits, low digits.
    NibbleProducts products[Rows][2];
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      products[r][0] = products[r][1] = no_nibble_products();
    }
    PAGODA_TILE_UNROLL for (int index = 0; index < 4; ++index) {
      const NibbleLine line = split_nibbles(load_codes(tile.codes + index * kLineBytes));
      PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
        const std::int8_t* const digits =
            x.digits_of(static_cast<std::size_t>(r), group) + 4 * index;
        products[r][0] = add_products(products[r][0], line, digits);
        products[r][1] = add_products(products[r][1], line, digits + kStep);
      }
    }
    const Words16 steps = Format::steps(tile, 0);
    const Words16 offsets = Format::offsets(format, tile, steps);
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      const GroupSums& x_sums = x.sums_of(static_cast<std::size_t>(r), group);
      high[t][r] = add_group(high[t][r], products[r][0], steps, offsets, x_sums.high);
      low[t][r] = add_group(low[t][r], products[r][1], steps, offsets, x_sums.low);
    }
  }

  [[gnu::always_inline]] void close_part() {
    PAGODA_TILE_UNROLL for (int t = 0; t < RowTiles; ++t) {
      PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
        total[t][r] = add_products(add_products(total[t][r], high[t][r], broadcast_sum(kDigitBase)),
                                   low[t][r], broadcast_sum(1));
        high[t][r] = low[t][r] = no_sums();
      }
    }
  }
};

// Bytes: a group's sum of codes times integers of x fits into 32 bits, times a step it does not.
template <class Format, int Rows, int RowTiles>
struct ByteSums {
  const DigitRows& x;
  I64x16 total[RowTiles][Rows];
  ByteFactors room[Rows];
  decltype(byte_factors(nullptr, room[0])) factors[Rows];

  [[gnu::always_inline]] explicit ByteSums(const DigitRows& rows) : x(rows) {
    PAGODA_TILE_UNROLL for (int t = 0; t < RowTiles; ++t) {
      PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) total[t][r] = no_wide_sums();
    }
  }

  [[gnu::always_inline]] void begin_group(std::size_t group) {
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      factors[r] = byte_factors(x.digits_of(static_cast<std::size_t>(r), group), room[r]);
    }
  }

  // Lines [Line, Line + Lines) of codes, whose columns have these steps.
  template <int Line, int Lines>
  [[gnu::always_inline]] void add_lines(const PackedFormat& format, PackedTile tile,
                                        std::size_t group, int t, const I32x16& steps) {
    ByteProducts products[Rows];
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      products[r] = no_byte_products();
      factors[r] = read_again(factors[r]);
    }
    PAGODA_TILE_UNROLL for (std::size_t index = Line; index < Line + Lines; ++index) {
      const ByteLine line = split_bytes(load_codes(tile.codes + index * kLineBytes));
      PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
        products[r] = add_products(products[r], line, factors[r], index);
      }
    }
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      const GroupSums& parts = x.sums_of(static_cast<std::size_t>(r), group);
      std::int32_t x_sum = 0;
      for (int half = Line / 4; half < (Line + Lines) / 4; ++half) {
        x_sum += kDigitBase * parts.high[half] + parts.low[half];
      }
      I32x16 sum = to_sums(products[r]);
      if constexpr (Format::kOffsets) {
        total[t][r] = add_products(total[t][r], broadcast_sum(x_sum),
                                   to_sums(Format::offsets(format, tile, Format::steps(tile, 0))));
      } else {
        sum = sum + broadcast_sum(format.lowest * x_sum);
      }
      total[t][r] = add_products(total[t][r], sum, steps);
    }
  }

  [[gnu::always_inline]] void add(const PackedFormat& format, PackedTile tile, std::size_t group,
                                  int t) {
    if constexpr (Format::kEach16) {
      add_lines<0, 4>(format, tile, group, t, to_sums(Format::steps(tile, 0)));
      add_lines<4, 4>(format, tile, group, t, to_sums(Format::steps(tile, 1)));
    } else {
      add_lines<0, 8>(format, tile, group, t, to_sums(Format::steps(tile, 0)));
    }
  }

  [[gnu::always_inline]] void close_part() {}
};

template <class Format, int Rows, int RowTiles>
void multiply(const Matmul& job, const PackedWeight& weight, std::size_t first_row,
              std::size_t row_tile) {
  using Sums = std::conditional_t<Format::kNibbles, NibbleSums<Format, Rows, RowTiles>,
                                  ByteSums<Format, Rows, RowTiles>>;
  const DigitRows x(job, first_row);
  Sums sums(x);
  for (std::size_t group = 0; group < weight.groups;) {
    const std::size_t rest = weight.groups - group;
    const std::size_t end = group + (rest < kGroupsIn32Bits ? rest : kGroupsIn32Bits);
    for (; group < end; ++group) {
      weight.prefetch(row_tile, group, RowTiles);
      sums.begin_group(group);
      PAGODA_TILE_UNROLL for (int t = 0; t < RowTiles; ++t) {
        sums.add(weight.format, weight.tile(row_tile + static_cast<std::size_t>(t), group), group,
                 t);
      }
    }
    sums.close_part();
  }
  PAGODA_TILE_UNROLL for (int t = 0; t < RowTiles; ++t) {
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      put_sums(job, weight, first_row + static_cast<std::size_t>(r),
               x.scale_of(static_cast<std::size_t>(r)), row_tile + static_cast<std::size_t>(t),
               floats_of(sums.total[t][r]));
    }
  }
}

// Row tiles come in pairs: where a matrix ends with half of one, the other half is zeros.
template <class Format, int Rows>
void multiply_rows(const Matmul& job, const PackedWeight& weight, std::size_t first_row,
                   std::size_t begin, std::size_t end) {
  std::size_t row_tile = begin;
  for (; row_tile + 4 <= end; row_tile += 4) {
    multiply<Format, Rows, 4>(job, weight, first_row, row_tile);
  }
  for (; row_tile < end; row_tile += 2) {
    multiply<Format, Rows, 2>(job, weight, first_row, row_tile);
  }
}

}  // namespace

// Four row tiles at a time for all rows of x: they stay in the first-level cache meanwhile.
void multiply_by_rows(const Matmul& job, const PackedWeight& weight, std::size_t first_row,
                      std::size_t begin, std::size_t end) {
  with_grid_format(weight.format, [&]<class Format>(Format) {
    constexpr int kRowsTogether = Format::kNibbles ? kNibbleRows : kByteRows;
    for (std::size_t part = begin; part < end; part += tiles::kTilesTogether) {
      const std::size_t part_end =
          end - part < tiles::kTilesTogether ? end : part + tiles::kTilesTogether;
      std::size_t row = first_row;
      for (; row + kRowsTogether <= job.rows; row += kRowsTogether) {
        multiply_rows<Format, kRowsTogether>(job, weight, row, part, part_end);
      }
      if (kRowsTogether > 2 && row + 2 <= job.rows) {
        multiply_rows<Format, 2>(job, weight, row, part, part_end);
        row += 2;
      }
      if (row < job.rows) multiply_rows<Format, 1>(job, weight, row, part, part_end);
    }
  });
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET

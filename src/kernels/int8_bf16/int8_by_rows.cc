// Exact integer GEMM of a few rows of x at a time: 16 outputs are the lanes, and what is unpacked
// serves all rows. Codes are multiplied with the limbs of x; a group's sums are multiplied with its
// scales.
#include "kernels/int8_bf16/int8_format.h"
#include "kernels/int8_bf16/int8_matmul.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

// The groups of nibbles whose sum fits into 32 bits: 2^7 * 2^15 * 32 * 16 = 2^31.
constexpr std::size_t kGroupsIn32Bits = 16;

// Nibbles: 16 products of a code and a limb fit into a word, and a few groups of them, multiplied
// with their scales, into 32 bits.
template <class Format, int Rows, int RowTiles>
struct NibbleSums {
  LimbRows x;
  I32x16 high[RowTiles][Rows];
  I32x16 low[RowTiles][Rows];
  I64x16 total[RowTiles][Rows];

  [[gnu::always_inline]] explicit NibbleSums(const LimbRows& rows) : x(rows) {
    PAGODA_ISA_UNROLL for (int t = 0; t < RowTiles; ++t) {
      PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
        high[t][r] = low[t][r] = no_sums();
        total[t][r] = no_wide_sums();
      }
    }
  }

  [[gnu::always_inline]] void begin_group(std::size_t) {}

  [[gnu::always_inline]] void add(const PackedFormat& format, PackedTile tile, std::size_t group,
                                  int t) {
    x.limbs = read_again(x.limbs);
    // High limbs, low limbs.
    NibbleProducts products[Rows][2];
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      products[r][0] = products[r][1] = no_nibble_products();
    }
    PAGODA_ISA_UNROLL for (int index = 0; index < 4; ++index) {
      const NibbleLine line = split_nibbles(load_codes(tile.codes + index * kLineBytes));
      PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
        const std::int8_t* const limbs = x.limbs_of(static_cast<std::size_t>(r), group) + 4 * index;
        products[r][0] = add_products(products[r][0], line, limbs);
        products[r][1] = add_products(products[r][1], line, limbs + kBlockK);
      }
    }
    const Words16 scales = Format::scales(tile, 0);
    const Words16 zero_points = Format::zero_points(format, tile, scales);
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      const GroupSums& x_sums = x.sums_of(static_cast<std::size_t>(r), group);
      high[t][r] = add_group(high[t][r], products[r][0], scales, zero_points, x_sums.high);
      low[t][r] = add_group(low[t][r], products[r][1], scales, zero_points, x_sums.low);
    }
  }

  [[gnu::always_inline]] void close_part() {
    PAGODA_ISA_UNROLL for (int t = 0; t < RowTiles; ++t) {
      PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
        total[t][r] = add_products(add_products(total[t][r], high[t][r], broadcast_sum(kLimbBase)),
                                   low[t][r], broadcast_sum(1));
        high[t][r] = low[t][r] = no_sums();
      }
    }
  }
};

// Bytes: a group's sum of codes times integers of x fits into 32 bits, times a scale it does not.
template <class Format, int Rows, int RowTiles>
struct ByteSums {
  const LimbRows& x;
  I64x16 total[RowTiles][Rows];
  ByteFactors room[Rows];
  decltype(byte_factors(nullptr, room[0])) factors[Rows];

  [[gnu::always_inline]] explicit ByteSums(const LimbRows& rows) : x(rows) {
    PAGODA_ISA_UNROLL for (int t = 0; t < RowTiles; ++t) {
      PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) total[t][r] = no_wide_sums();
    }
  }

  [[gnu::always_inline]] void begin_group(std::size_t group) {
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      factors[r] = byte_factors(x.limbs_of(static_cast<std::size_t>(r), group), room[r]);
    }
  }

  // Lines [Line, Line + Lines) of codes, whose columns have these scales.
  template <int Line, int Lines>
  [[gnu::always_inline]] void add_lines(const PackedFormat& format, PackedTile tile,
                                        std::size_t group, int t, const I32x16& scales) {
    ByteProducts products[Rows];
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      products[r] = no_byte_products();
      factors[r] = read_again(factors[r]);
    }
    PAGODA_ISA_UNROLL for (std::size_t index = Line; index < Line + Lines; ++index) {
      const ByteLine line = split_bytes(load_codes(tile.codes + index * kLineBytes));
      PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
        products[r] = add_products(products[r], line, factors[r], index);
      }
    }
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      const GroupSums& parts = x.sums_of(static_cast<std::size_t>(r), group);
      std::int32_t x_sum = 0;
      for (int half = Line / 4; half < (Line + Lines) / 4; ++half) {
        x_sum += kLimbBase * parts.high[half] + parts.low[half];
      }
      I32x16 sum = to_sums(products[r]);
      if constexpr (Format::kZeroPoints) {
        total[t][r] =
            add_products(total[t][r], broadcast_sum(x_sum),
                         to_sums(Format::zero_points(format, tile, Format::scales(tile, 0))));
      } else {
        sum = sum + broadcast_sum(format.lowest * x_sum);
      }
      total[t][r] = add_products(total[t][r], sum, scales);
    }
  }

  [[gnu::always_inline]] void add(const PackedFormat& format, PackedTile tile, std::size_t group,
                                  int t) {
    if constexpr (Format::kPer16) {
      add_lines<0, 4>(format, tile, group, t, to_sums(Format::scales(tile, 0)));
      add_lines<4, 4>(format, tile, group, t, to_sums(Format::scales(tile, 1)));
    } else {
      add_lines<0, 8>(format, tile, group, t, to_sums(Format::scales(tile, 0)));
    }
  }

  [[gnu::always_inline]] void close_part() {}
};

template <class Format, int Rows, int RowTiles>
void multiply(const Matmul& job, const PackedWeight& weight, std::size_t first_row,
              std::size_t row_tile) {
  using Sums = std::conditional_t<Format::kNibbles, NibbleSums<Format, Rows, RowTiles>,
                                  ByteSums<Format, Rows, RowTiles>>;
  const LimbRows x(job, first_row);
  Sums sums(x);
  for (std::size_t group = 0; group < weight.groups;) {
    const std::size_t rest = weight.groups - group;
    const std::size_t end = group + (rest < kGroupsIn32Bits ? rest : kGroupsIn32Bits);
    for (; group < end; ++group) {
      weight.prefetch(row_tile, group, RowTiles);
      sums.begin_group(group);
      PAGODA_ISA_UNROLL for (int t = 0; t < RowTiles; ++t) {
        sums.add(weight.format, weight.tile(row_tile + static_cast<std::size_t>(t), group), group,
                 t);
      }
    }
    sums.close_part();
  }
  PAGODA_ISA_UNROLL for (int t = 0; t < RowTiles; ++t) {
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
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
  with_int8_format(weight.format, [&]<class Format>(Format) {
    constexpr int kRowsTogether = Format::kNibbles ? kNibbleRows : kByteRows;
    for (std::size_t part = begin; part < end; part += int8_bf16::kTilesTogether) {
      const std::size_t part_end =
          end - part < int8_bf16::kTilesTogether ? end : part + int8_bf16::kTilesTogether;
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

}  // namespace pagoda::kernels::PAGODA_ISA

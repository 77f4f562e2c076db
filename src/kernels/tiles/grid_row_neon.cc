// Grid sums of one row of x, or of a few one after the other. Its high and its low digits are the
// two rows that one instruction multiplies with two outputs; codes are read as they stand in
// memory.
#include "kernels/tiles/grid_eights.h"

namespace pagoda::kernels::PAGODA_TILE_SET {
namespace {

// 32 columns of x as the kernel reads them.
//
// Nibbles: bytes are multiplied twice, as they are and with the high nibbles masked out. The
// difference is 16 times what the high nibbles, rows 4-7 of an octet, give: their sums are kept so
// and shifted at the end. Seeds are what sums begin with: (0, s, 0, s) beside (high, low, high,
// low) digits.
struct alignas(64) RowGroup {
  std::int8_t eights[kEights][16];  // 8 high digits, 8 low ones
  std::int32_t first[4];            // with offsets: N, 16 N;  else seeds lowest * N
  std::int32_t second[4];           // nibbles: seeds of whole bytes;  each 16: of columns 16-31
};
constexpr int kHighShift = 4;

template <class Format>
void arrange(const DigitRow& x, int lowest, std::size_t groups, RowGroup* out) {
  const auto seed = [](std::int32_t* place, std::int32_t value) {
    const std::int32_t seeds[4] = {0, value, 0, value};
    vst1q_s32(place, vld1q_s32(seeds));
  };
  for (std::size_t group = 0; group < groups; ++group, ++out) {
    const std::int8_t* const digits = x.digits(group);
    for (int half = 0; half < 2; ++half) {
      const int8x16_t high = vld1q_s8(digits + 16 * half);
      const int8x16_t low = vld1q_s8(digits + kStep + 16 * half);
      vst1q_s8(out->eights[2 * half], first_eights(high, low));
      vst1q_s8(out->eights[2 * half + 1], second_eights(high, low));
    }
    const GroupSums& of = x.sums(group);
    const std::int32_t sums[2] = {kDigitBase * of.high[0] + of.low[0],
                                  kDigitBase * of.high[1] + of.low[1]};
    if constexpr (Format::kOffsets) {
      out->first[0] = sums[0] + sums[1];
      out->first[1] = (sums[0] + sums[1]) * (1 << kHighShift);
    } else if constexpr (Format::kEach16) {
      seed(out->first, lowest * sums[0]);
      seed(out->second, lowest * sums[1]);
    } else {
      seed(out->first, lowest * (sums[0] + sums[1]));
      seed(out->second, ((1 << kHighShift) + 1) * lowest * (sums[0] + sums[1]));
    }
  }
}

// (high, low) sums of outputs 0 1 and 2 3 -> the sums of the integers of four outputs
[[gnu::always_inline]] inline int32x4_t joined(int32x4_t first, int32x4_t second) {
  return vmlaq_s32(vuzp2q_s32(first, second), vuzp1q_s32(first, second), vdupq_n_s32(kDigitBase));
}

struct QuadSum {
  int64x2_t sums[2];

  [[gnu::always_inline]] void add(int32x4_t t, int32x4_t step) {
    sums[0] = vmlal_s32(sums[0], vget_low_s32(t), vget_low_s32(step));
    sums[1] = vmlal_high_s32(sums[1], t, step);
  }
  template <int Lane>
  [[gnu::always_inline]] void add_times(int32x4_t offset, int32x4_t factors) {
    sums[0] = vmlal_laneq_s32(sums[0], vget_low_s32(offset), factors, Lane);
    sums[1] = vmlal_high_laneq_s32(sums[1], offset, factors, Lane);
  }
};

// The steps, or offsets, of the quads of an octet.
struct OctetWords {
  int16x8_t words;
  [[gnu::always_inline]] int32x4_t first() const { return vmovl_s16(vget_low_s16(words)); }
  [[gnu::always_inline]] int32x4_t second() const { return vmovl_high_s16(words); }
};

// Two quads of outputs, 32 columns.
template <class Format>
[[gnu::always_inline]] inline void add_octet(const std::byte* tile, int octet, const RowGroup& x,
                                             QuadSum (&total)[2]) {
  const auto* const codes = reinterpret_cast<const std::uint8_t*>(tile) + 128 * octet;
  const auto* const steps =
      reinterpret_cast<const std::int16_t*>(tile + Format::kCodeBytes) + 8 * octet;
  const auto begin = [](const std::int32_t* seeds) {
    return Format::kOffsets ? no_sums() : load_again(seeds);
  };
  int32x4_t low[2] = {begin(x.first), begin(x.first)};
  int32x4_t both[2] = {begin(x.second), begin(x.second)};
  PAGODA_TILE_UNROLL for (std::size_t e = 0; e < kEights; ++e) {
    const int8x16_t digits = vld1q_s8(x.eights[e]);
    PAGODA_TILE_UNROLL for (int pair = 0; pair < 2; ++pair) {
      const uint8x16_t bytes = vld1q_u8(codes + 32 * e + 16 * pair);
      both[pair] = vusmmlaq_s32(both[pair], bytes, digits);
      low[pair] = vusmmlaq_s32(low[pair], vandq_u8(bytes, vdupq_n_u8(15)), digits);
    }
  }
  const int32x4_t first = joined(low[0], low[1]);
  const int32x4_t second = vsubq_s32(joined(both[0], both[1]), first);
  const OctetWords step = {vld1q_s16(steps)};
  total[0].add(first, step.first());
  total[1].add(second, step.second());
  if constexpr (Format::kOffsets) {
    const OctetWords offset = {vld1q_s16(steps + kTileRows)};
    const int32x4_t sums = vld1q_s32(x.first);
    total[0].template add_times<0>(offset.first(), sums);
    total[1].template add_times<1>(offset.second(), sums);
  }
}

// One quad of outputs whose codes are bytes: eights [First, Last) of 32 columns.
template <class Format, std::size_t First, std::size_t Last>
[[gnu::always_inline]] inline void add_eights(const std::byte* tile, int quad, const RowGroup& x,
                                              const std::int32_t* seeds, int32x4_t step,
                                              QuadSum& total) {
  const auto* const codes = reinterpret_cast<const std::uint8_t*>(tile) + 128 * quad;
  int32x4_t sums[2];
  PAGODA_TILE_UNROLL for (int pair = 0; pair < 2; ++pair) {
    sums[pair] = Format::kOffsets ? no_sums() : load_again(seeds);
    PAGODA_TILE_UNROLL for (std::size_t e = First; e < Last; ++e) {
      sums[pair] =
          vusmmlaq_s32(sums[pair], vld1q_u8(codes + 32 * e + 16 * pair), vld1q_s8(x.eights[e]));
    }
  }
  total.add(joined(sums[0], sums[1]), step);
}

template <class Format>
[[gnu::always_inline]] inline void add_quad(const std::byte* tile, int quad, const RowGroup& x,
                                            QuadSum& total) {
  const auto* const words =
      reinterpret_cast<const std::int16_t*>(tile + Format::kCodeBytes) + 4 * quad;
  const int32x4_t step = vmovl_s16(vld1_s16(words));
  if constexpr (Format::kEach16) {
    add_eights<Format, 0, 2>(tile, quad, x, x.first, step, total);
    add_eights<Format, 2, 4>(tile, quad, x, x.second, vmovl_s16(vld1_s16(words + kTileRows)),
                             total);
  } else {
    add_eights<Format, 0, 4>(tile, quad, x, x.first, step, total);
  }
  if constexpr (Format::kOffsets) {
    total.template add_times<0>(vmovl_s16(vld1_s16(words + kTileRows)), vld1q_s32(x.first));
  }
}

template <class Format>
void multiply_row_tile(const Matmul& job, const PackedEights& weight, const RowGroup* x,
                       std::size_t row, float x_scale, std::size_t row_tile) {
  // Nothing is asked for ahead: the CPU sees by itself that memory is read in order.
  const std::byte* tile = weight.row_tile(row_tile);
  QuadSum totals[2][2] = {};
  for (std::size_t group = 0; group < weight.groups; ++group, tile += Format::kTileBytes) {
    PAGODA_TILE_UNROLL for (int octet = 0; octet < 2; ++octet) {
      if constexpr (Format::kNibbles) {
        add_octet<Format>(tile, octet, x[group], totals[octet]);
      } else {
        add_quad<Format>(tile, 2 * octet, x[group], totals[octet][0]);
        add_quad<Format>(tile, 2 * octet + 1, x[group], totals[octet][1]);
      }
    }
  }
  PAGODA_TILE_UNROLL for (std::size_t quad = 0; quad < 4; ++quad) {
    QuadSum& sum = totals[quad / 2][quad % 2];
    if (Format::kNibbles && quad % 2 == 1) {
      sum.sums[0] = vshrq_n_s64(sum.sums[0], kHighShift);
      sum.sums[1] = vshrq_n_s64(sum.sums[1], kHighShift);
    }
    put_quad(job, row, x_scale, weight.row_scales(row_tile) + kQuad * quad,
             row_tile * kTileRows + kQuad * quad, floats_of(sum.sums[0], sum.sums[1]));
  }
}

}  // namespace

std::size_t few_rows_scratch(std::size_t columns) {
  return kFewRows * groups_of(columns) * sizeof(RowGroup);
}

void multiply_few_rows(const Matmul& job, const PackedEights& weight, std::size_t begin,
                       std::size_t end, std::byte* scratch) {
  const OperandLayout layout(job.weight.columns);
  auto* const groups = reinterpret_cast<RowGroup*>(scratch);
  with_eights_format(weight.format, [&]<class Format>(Format) {
    for (std::size_t row = 0; row < job.rows; ++row) {
      arrange<Format>(DigitRow(job.x, layout, row), weight.format.lowest, weight.groups,
                      groups + row * weight.groups);
    }
    for (std::size_t row_tile = begin; row_tile < end; ++row_tile) {
      for (std::size_t row = 0; row < job.rows; ++row) {
        multiply_row_tile<Format>(job, weight, groups + row * weight.groups, row,
                                  DigitRow(job.x, layout, row).scale(), row_tile);
      }
    }
  });
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET

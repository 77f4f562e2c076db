// Exact integer GEMM of many rows of x. Two rows and two outputs are multiplied by one instruction;
// four rows and four outputs share what is loaded. Codes of 16 outputs are unpacked once for a
// block of rows, and a block of rows is arranged once for all outputs.
#include "kernels/int8_bf16/usmmla.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

// 32 columns of four rows of x. A pair is two rows side by side.
struct alignas(64) RowsGroup {
  std::int8_t k8[kK8Blocks][2][2][16];  // [k8][high, low][pair]
  // Per pair. With zero_points: N of either row; else what sums begin with, lowest * N, twice, and
  // for columns 16-31 where these have scales of their own.
  std::int32_t first[2][4];
  std::int32_t second[2][4];
};

// 32 columns of four outputs.
struct alignas(32) CodesGroup {
  std::uint8_t k8[kK8Blocks][2][16];  // [k8][pair of outputs]
  std::int32_t scales[kPanelOutputs];
  std::int32_t others[kPanelOutputs];  // zero_points, or the scales of columns 16-31
};

// Rows of x that are arranged together: what the second-level cache likes, and no more than make
// unpacking cheap.
constexpr std::size_t kRowsMax = 64;
constexpr std::size_t kRowsBytes = std::size_t{512} << 10;
std::size_t rows_together(std::size_t groups) {
  const std::size_t fit = kRowsBytes / (groups * sizeof(RowsGroup)) * kPanelOutputs;
  return fit < kPanelOutputs ? kPanelOutputs : fit < kRowsMax ? fit : kRowsMax;
}

// ---- x

// (sums of the integers of two rows) for columns 0-15 and for 16-31.
struct PairHalves {
  int32x2_t first;
  int32x2_t second;
};
[[gnu::always_inline]] inline PairHalves sums_of(const GroupSums& a, const GroupSums& b) {
  static_assert(sizeof(GroupSums) == 8);
  const auto words = [](const GroupSums& of) {
    return vmovl_s16(vld1_s16(reinterpret_cast<const std::int16_t*>(&of)));
  };
  const auto integers = [&](const GroupSums& of) {  // [half]
    const int32x4_t limbs = words(of);              // high[2], low[2]
    return vmla_n_s32(vget_high_s32(limbs), vget_low_s32(limbs), kLimbBase);
  };
  const int32x2_t of_a = integers(a);
  const int32x2_t of_b = integers(b);
  return {vzip1_s32(of_a, of_b), vzip2_s32(of_a, of_b)};
}

// Two rows, one group.
template <class Format>
[[gnu::always_inline]] inline void arrange_pair(const LimbRow& a, const LimbRow& b, int lowest,
                                                std::size_t group, std::size_t pair,
                                                RowsGroup& out) {
  PAGODA_ISA_UNROLL for (std::size_t limb = 0; limb < 2; ++limb) {
    PAGODA_ISA_UNROLL for (std::size_t half = 0; half < 2; ++half) {
      const int8x16_t of_a = vld1q_s8(a.limbs(group) + limb * kBlockK + 16 * half);
      const int8x16_t of_b = vld1q_s8(b.limbs(group) + limb * kBlockK + 16 * half);
      vst1q_s8(out.k8[2 * half][limb][pair], first_k8(of_a, of_b));
      vst1q_s8(out.k8[2 * half + 1][limb][pair], second_k8(of_a, of_b));
    }
  }
  const PairHalves sums = sums_of(a.sums(group), b.sums(group));
  const auto put = [&](std::int32_t* place, int32x2_t of) {
    const int32x2_t seeds = Format::kZeroPoints ? of : vmul_n_s32(of, lowest);
    vst1q_s32(place, vcombine_s32(seeds, seeds));
  };
  if constexpr (Format::kPer16) {
    put(out.first[pair], sums.first);
    put(out.second[pair], sums.second);
  } else {
    put(out.first[pair], vadd_s32(sums.first, sums.second));
  }
}

// Rows [first, first + count), at most four, all groups. Rows that are lacking are not multiplied
// with in the end: they repeat the first.
template <class Format>
void arrange_rows(const Matmul& job, int lowest, std::size_t first, std::size_t count,
                  std::size_t groups, RowsGroup* out) {
  const ActivationLayout layout(job.weight.columns);
  const auto row = [&](std::size_t i) {
    return LimbRow(job.x, layout, first + (i < count ? i : 0));
  };
  const LimbRow rows[kPanelOutputs] = {row(0), row(1), row(2), row(3)};
  for (std::size_t group = 0; group < groups; ++group, ++out) {
    arrange_pair<Format>(rows[0], rows[1], lowest, group, 0, *out);
    arrange_pair<Format>(rows[2], rows[3], lowest, group, 1, *out);
  }
}

// ---- weights

// A row tile: [4 panels][groups]
template <class Format>
void unpack_row_tile(const UsmmlaPanels& weight, std::size_t row_tile, CodesGroup* out) {
  const std::byte* tile = weight.row_tile(row_tile);
  const std::size_t groups = weight.groups;
  for (std::size_t group = 0; group < groups; ++group, tile += Format::kTileBytes, ++out) {
    const auto* const codes = reinterpret_cast<const std::uint8_t*>(tile);
    const auto* const words = reinterpret_cast<const std::int16_t*>(tile + Format::kCodeBytes);
    PAGODA_ISA_UNROLL for (std::size_t line = 0; line < Format::kCodeBytes / 16; ++line) {
      const uint8x16_t bytes = vld1q_u8(codes + 16 * line);
      const std::size_t part = line / (2 * kK8Blocks);
      const std::size_t place = line % (2 * kK8Blocks);
      const auto put = [&](std::size_t panel, uint8x16_t of) {
        vst1q_u8(out[panel * groups].k8[place / 2][place % 2], of);
      };
      if constexpr (Format::kNibbles) {
        put(2 * part, vandq_u8(bytes, vdupq_n_u8(15)));
        put(2 * part + 1, vshrq_n_u8(bytes, 4));
      } else {
        put(part, bytes);
      }
    }
    PAGODA_ISA_UNROLL for (std::size_t panel = 0; panel < 4; ++panel) {
      CodesGroup& target = out[panel * groups];
      vst1q_s32(target.scales, vmovl_s16(vld1_s16(words + kPanelOutputs * panel)));
      if constexpr (Format::kZeroPoints || Format::kPer16) {
        vst1q_s32(target.others, vmovl_s16(vld1_s16(words + kTileRows + kPanelOutputs * panel)));
      }
    }
  }
}

// ---- products

// Four outputs and 2 * Pairs rows.
template <class Format, int Pairs>
class PanelProducts {
 public:
  [[gnu::always_inline]] void add(const CodesGroup& codes, const RowsGroup& x) {
    const int32x4_t scales = vld1q_s32(codes.scales);
    if constexpr (Format::kPer16) {
      add_k8_blocks<0, 2>(codes, x, x.first, scales);
      add_k8_blocks<2, 4>(codes, x, x.second, vld1q_s32(codes.others));
    } else {
      add_k8_blocks<0, 4>(codes, x, x.first, scales);
    }
    if constexpr (Format::kZeroPoints) {
      const int32x4_t zero_points = vld1q_s32(codes.others);
      PAGODA_ISA_UNROLL for (int pair = 0; pair < Pairs; ++pair) {
        const int32x2_t sums = vld1_s32(x.first[pair]);
        add_to<0>(pair, sums, zero_points);
        add_to<1>(pair, sums, zero_points);
        add_to<2>(pair, sums, zero_points);
        add_to<3>(pair, sums, zero_points);
      }
    }
  }

  // The sums of row 2 * pair, and of the row after it.
  [[gnu::always_inline]] float32x4_t first_row(int pair) const {
    return floats_of(vzip1q_s64(totals_[pair][0], totals_[pair][1]),
                     vzip1q_s64(totals_[pair][2], totals_[pair][3]));
  }
  [[gnu::always_inline]] float32x4_t second_row(int pair) const {
    return floats_of(vzip2q_s64(totals_[pair][0], totals_[pair][1]),
                     vzip2q_s64(totals_[pair][2], totals_[pair][3]));
  }

 private:
  template <int Output>
  [[gnu::always_inline]] void add_to(int pair, int32x2_t sums, int32x4_t factors) {
    totals_[pair][Output] = vmlal_laneq_s32(totals_[pair][Output], sums, factors, Output);
  }

  template <std::size_t First, std::size_t Last>
  [[gnu::always_inline]] void add_k8_blocks(const CodesGroup& codes, const RowsGroup& x,
                                            const std::int32_t (&seeds)[2][4], int32x4_t scales) {
    int32x4_t high[Pairs][2];
    int32x4_t low[Pairs][2];
    PAGODA_ISA_UNROLL for (int pair = 0; pair < Pairs; ++pair) {
      PAGODA_ISA_UNROLL for (int outputs = 0; outputs < 2; ++outputs) {
        high[pair][outputs] = no_sums();
        low[pair][outputs] = Format::kZeroPoints ? no_sums() : load_again(seeds[pair]);
      }
    }
    PAGODA_ISA_UNROLL for (std::size_t e = First; e < Last; ++e) {
      const uint8x16_t a = vld1q_u8(codes.k8[e][0]);
      const uint8x16_t b = vld1q_u8(codes.k8[e][1]);
      PAGODA_ISA_UNROLL for (int pair = 0; pair < Pairs; ++pair) {
        const int8x16_t x_high = vld1q_s8(x.k8[e][0][pair]);
        const int8x16_t x_low = vld1q_s8(x.k8[e][1][pair]);
        high[pair][0] = vusmmlaq_s32(high[pair][0], a, x_high);
        high[pair][1] = vusmmlaq_s32(high[pair][1], b, x_high);
        low[pair][0] = vusmmlaq_s32(low[pair][0], a, x_low);
        low[pair][1] = vusmmlaq_s32(low[pair][1], b, x_low);
      }
    }
    PAGODA_ISA_UNROLL for (int pair = 0; pair < Pairs; ++pair) {
      const int32x4_t base = vdupq_n_s32(kLimbBase);
      const int32x4_t a = vmlaq_s32(low[pair][0], high[pair][0], base);
      const int32x4_t b = vmlaq_s32(low[pair][1], high[pair][1], base);
      add_to<0>(pair, vget_low_s32(a), scales);
      totals_[pair][1] = vmlal_high_laneq_s32(totals_[pair][1], a, scales, 1);
      add_to<2>(pair, vget_low_s32(b), scales);
      totals_[pair][3] = vmlal_high_laneq_s32(totals_[pair][3], b, scales, 3);
    }
  }

  int64x2_t totals_[Pairs][kPanelOutputs] = {};  // of two rows
};

// Rows [row, row + 2 * Pairs), those that exist, and four outputs from `output` on.
template <class Format, int Pairs>
void multiply_panel(const Matmul& job, const UsmmlaPanels& weight, const CodesGroup* codes,
                    const RowsGroup* x, std::size_t row, std::size_t output) {
  PanelProducts<Format, Pairs> products;
  for (std::size_t group = 0; group < weight.groups; ++group) products.add(codes[group], x[group]);
  const ActivationLayout layout(job.weight.columns);
  const float* const row_scales = weight.row_scales(0) + output;
  const auto put = [&](std::size_t of, float32x4_t sums) {
    if (of >= job.rows) return;
    put_panel(job, of, LimbRow(job.x, layout, of).scale(), row_scales, output, sums);
  };
  PAGODA_ISA_UNROLL for (int pair = 0; pair < Pairs; ++pair) {
    const std::size_t first = row + 2 * static_cast<std::size_t>(pair);
    put(first, products.first_row(pair));
    put(first + 1, products.second_row(pair));
  }
}

// A block of rows with row tiles [begin, end).
template <class Format>
void multiply_rows(const Matmul& job, const UsmmlaPanels& weight, std::size_t first_row,
                   std::size_t rows, std::size_t begin, std::size_t end, RowsGroup* x,
                   CodesGroup* codes) {
  const std::size_t groups = weight.groups;
  for (std::size_t row = 0; row < rows; row += kPanelOutputs) {
    const std::size_t count = rows - row < kPanelOutputs ? rows - row : kPanelOutputs;
    arrange_rows<Format>(job, weight.format.lowest, first_row + row, count, groups,
                         x + row / kPanelOutputs * groups);
  }
  for (std::size_t row_tile = begin; row_tile < end; ++row_tile) {
    unpack_row_tile<Format>(weight, row_tile, codes);
    for (std::size_t row = 0; row < rows; row += kPanelOutputs) {
      const RowsGroup* const of_rows = x + row / kPanelOutputs * groups;
      for (std::size_t panel = 0; panel < kTileRows / kPanelOutputs; ++panel) {
        const std::size_t output = row_tile * kTileRows + kPanelOutputs * panel;
        const CodesGroup* const of_panel = codes + panel * groups;
        if (rows - row > 2) {
          multiply_panel<Format, 2>(job, weight, of_panel, of_rows, first_row + row, output);
        } else {
          multiply_panel<Format, 1>(job, weight, of_panel, of_rows, first_row + row, output);
        }
      }
    }
  }
}

}  // namespace

std::size_t many_rows_scratch(std::size_t columns) {
  const std::size_t groups = groups_of(columns);
  return groups * (rows_together(groups) / kPanelOutputs * sizeof(RowsGroup) +
                   kTileRows / kPanelOutputs * sizeof(CodesGroup));
}

void multiply_many_rows(const Matmul& job, const UsmmlaPanels& weight, std::size_t begin,
                        std::size_t end, std::byte* scratch) {
  const std::size_t together = rows_together(weight.groups);
  auto* const x = reinterpret_cast<RowsGroup*>(scratch);
  auto* const codes = reinterpret_cast<CodesGroup*>(x + together / kPanelOutputs * weight.groups);
  with_usmmla_format(weight.format, [&]<class Format>(Format) {
    for (std::size_t row = 0; row < job.rows; row += together) {
      const std::size_t rows = job.rows - row < together ? job.rows - row : together;
      multiply_rows<Format>(job, weight, row, rows, begin, end, x, codes);
    }
  });
}

}  // namespace pagoda::kernels::PAGODA_ISA

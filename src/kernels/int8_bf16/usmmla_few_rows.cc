// Exact integer GEMM of one row of x, or of a few one after the other. Its high and its low limbs
// are the two rows that one instruction multiplies with two outputs; codes are read as they stand
// in memory.
#include "kernels/int8_bf16/usmmla.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

// 32 columns of x as the kernel reads them.
//
// Nibbles: bytes are multiplied twice, as they are and with the high nibbles masked out. The
// difference is 16 times what the high nibbles, rows 4-7 of a pair of panels, give: their sums are
// kept so and shifted at the end. Seeds are what sums begin with: (0, s, 0, s) beside (high, low,
// high, low) limbs.
struct alignas(64) RowGroup {
  std::int8_t k8[kK8Blocks][16];  // 8 high limbs, 8 low ones
  std::int32_t first[4];          // with zero_points: N, 16 N;  else seeds lowest * N
  std::int32_t second[4];         // nibbles: seeds of whole bytes;  each 16: of columns 16-31
};
constexpr int kHighShift = 4;

template <class Format>
void arrange(const LimbRow& x, int lowest, std::size_t groups, RowGroup* out) {
  const auto seed = [](std::int32_t* place, std::int32_t value) {
    const std::int32_t seeds[4] = {0, value, 0, value};
    vst1q_s32(place, vld1q_s32(seeds));
  };
  for (std::size_t group = 0; group < groups; ++group, ++out) {
    const std::int8_t* const limbs = x.limbs(group);
    for (int half = 0; half < 2; ++half) {
      const int8x16_t high = vld1q_s8(limbs + 16 * half);
      const int8x16_t low = vld1q_s8(limbs + kBlockK + 16 * half);
      vst1q_s8(out->k8[2 * half], first_k8(high, low));
      vst1q_s8(out->k8[2 * half + 1], second_k8(high, low));
    }
    const GroupSums& of = x.sums(group);
    const std::int32_t sums[2] = {kLimbBase * of.high[0] + of.low[0],
                                  kLimbBase * of.high[1] + of.low[1]};
    if constexpr (Format::kZeroPoints) {
      out->first[0] = sums[0] + sums[1];
      out->first[1] = (sums[0] + sums[1]) * (1 << kHighShift);
    } else if constexpr (Format::kPer16) {
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
  return vmlaq_s32(vuzp2q_s32(first, second), vuzp1q_s32(first, second), vdupq_n_s32(kLimbBase));
}

struct PanelSum {
  int64x2_t sums[2];

  [[gnu::always_inline]] void add(int32x4_t t, int32x4_t scale) {
    sums[0] = vmlal_s32(sums[0], vget_low_s32(t), vget_low_s32(scale));
    sums[1] = vmlal_high_s32(sums[1], t, scale);
  }
  template <int Lane>
  [[gnu::always_inline]] void add_times(int32x4_t zero_point, int32x4_t factors) {
    sums[0] = vmlal_laneq_s32(sums[0], vget_low_s32(zero_point), factors, Lane);
    sums[1] = vmlal_high_laneq_s32(sums[1], zero_point, factors, Lane);
  }
};

// The scales, or zero points, of the panels of a pair.
struct PanelPairWords {
  int16x8_t words;
  [[gnu::always_inline]] int32x4_t first() const { return vmovl_s16(vget_low_s16(words)); }
  [[gnu::always_inline]] int32x4_t second() const { return vmovl_high_s16(words); }
};

// Two panels of outputs, 32 columns.
template <class Format>
[[gnu::always_inline]] inline void add_panel_pair(const std::byte* tile, int panel_pair,
                                                  const RowGroup& x, PanelSum (&total)[2]) {
  const auto* const codes = reinterpret_cast<const std::uint8_t*>(tile) + 128 * panel_pair;
  const auto* const scales =
      reinterpret_cast<const std::int16_t*>(tile + Format::kCodeBytes) + 8 * panel_pair;
  const auto begin = [](const std::int32_t* seeds) {
    return Format::kZeroPoints ? no_sums() : load_again(seeds);
  };
  int32x4_t low[2] = {begin(x.first), begin(x.first)};
  int32x4_t both[2] = {begin(x.second), begin(x.second)};
  PAGODA_ISA_UNROLL for (std::size_t e = 0; e < kK8Blocks; ++e) {
    const int8x16_t limbs = vld1q_s8(x.k8[e]);
    PAGODA_ISA_UNROLL for (int pair = 0; pair < 2; ++pair) {
      const uint8x16_t bytes = vld1q_u8(codes + 32 * e + 16 * pair);
      both[pair] = vusmmlaq_s32(both[pair], bytes, limbs);
      low[pair] = vusmmlaq_s32(low[pair], vandq_u8(bytes, vdupq_n_u8(15)), limbs);
    }
  }
  const int32x4_t first = joined(low[0], low[1]);
  const int32x4_t second = vsubq_s32(joined(both[0], both[1]), first);
  const PanelPairWords scale = {vld1q_s16(scales)};
  total[0].add(first, scale.first());
  total[1].add(second, scale.second());
  if constexpr (Format::kZeroPoints) {
    const PanelPairWords zero_point = {vld1q_s16(scales + kTileRows)};
    const int32x4_t sums = vld1q_s32(x.first);
    total[0].template add_times<0>(zero_point.first(), sums);
    total[1].template add_times<1>(zero_point.second(), sums);
  }
}

// One panel of outputs whose codes are bytes: k8 blocks [First, Last) of 32 columns.
template <class Format, std::size_t First, std::size_t Last>
[[gnu::always_inline]] inline void add_k8_blocks(const std::byte* tile, int panel,
                                                 const RowGroup& x, const std::int32_t* seeds,
                                                 int32x4_t scale, PanelSum& total) {
  const auto* const codes = reinterpret_cast<const std::uint8_t*>(tile) + 128 * panel;
  int32x4_t sums[2];
  PAGODA_ISA_UNROLL for (int pair = 0; pair < 2; ++pair) {
    sums[pair] = Format::kZeroPoints ? no_sums() : load_again(seeds);
    PAGODA_ISA_UNROLL for (std::size_t e = First; e < Last; ++e) {
      sums[pair] =
          vusmmlaq_s32(sums[pair], vld1q_u8(codes + 32 * e + 16 * pair), vld1q_s8(x.k8[e]));
    }
  }
  total.add(joined(sums[0], sums[1]), scale);
}

template <class Format>
[[gnu::always_inline]] inline void add_panel(const std::byte* tile, int panel, const RowGroup& x,
                                             PanelSum& total) {
  const auto* const words =
      reinterpret_cast<const std::int16_t*>(tile + Format::kCodeBytes) + 4 * panel;
  const int32x4_t scale = vmovl_s16(vld1_s16(words));
  if constexpr (Format::kPer16) {
    add_k8_blocks<Format, 0, 2>(tile, panel, x, x.first, scale, total);
    add_k8_blocks<Format, 2, 4>(tile, panel, x, x.second, vmovl_s16(vld1_s16(words + kTileRows)),
                                total);
  } else {
    add_k8_blocks<Format, 0, 4>(tile, panel, x, x.first, scale, total);
  }
  if constexpr (Format::kZeroPoints) {
    total.template add_times<0>(vmovl_s16(vld1_s16(words + kTileRows)), vld1q_s32(x.first));
  }
}

template <class Format>
void multiply_row_tile(const Matmul& job, const UsmmlaPanels& weight, const RowGroup* x,
                       std::size_t row, float x_scale, std::size_t row_tile) {
  // Nothing is asked for ahead: the CPU sees by itself that memory is read in order.
  const std::byte* tile = weight.row_tile(row_tile);
  PanelSum totals[2][2] = {};
  for (std::size_t group = 0; group < weight.groups; ++group, tile += Format::kTileBytes) {
    PAGODA_ISA_UNROLL for (int panel_pair = 0; panel_pair < 2; ++panel_pair) {
      if constexpr (Format::kNibbles) {
        add_panel_pair<Format>(tile, panel_pair, x[group], totals[panel_pair]);
      } else {
        add_panel<Format>(tile, 2 * panel_pair, x[group], totals[panel_pair][0]);
        add_panel<Format>(tile, 2 * panel_pair + 1, x[group], totals[panel_pair][1]);
      }
    }
  }
  PAGODA_ISA_UNROLL for (std::size_t panel = 0; panel < 4; ++panel) {
    PanelSum& sum = totals[panel / 2][panel % 2];
    if (Format::kNibbles && panel % 2 == 1) {
      sum.sums[0] = vshrq_n_s64(sum.sums[0], kHighShift);
      sum.sums[1] = vshrq_n_s64(sum.sums[1], kHighShift);
    }
    put_panel(job, row, x_scale, weight.row_scales(row_tile) + kPanelOutputs * panel,
              row_tile * kTileRows + kPanelOutputs * panel, floats_of(sum.sums[0], sum.sums[1]));
  }
}

}  // namespace

std::size_t few_rows_scratch(std::size_t columns) {
  return kFewRows * groups_of(columns) * sizeof(RowGroup);
}

void multiply_few_rows(const Matmul& job, const UsmmlaPanels& weight, std::size_t begin,
                       std::size_t end, std::byte* scratch) {
  const ActivationLayout layout(job.weight.columns);
  auto* const groups = reinterpret_cast<RowGroup*>(scratch);
  with_usmmla_format(weight.format, [&]<class Format>(Format) {
    for (std::size_t row = 0; row < job.rows; ++row) {
      arrange<Format>(LimbRow(job.x, layout, row), weight.format.lowest, weight.groups,
                      groups + row * weight.groups);
    }
    for (std::size_t row_tile = begin; row_tile < end; ++row_tile) {
      for (std::size_t row = 0; row < job.rows; ++row) {
        multiply_row_tile<Format>(job, weight, groups + row * weight.groups, row,
                                  LimbRow(job.x, layout, row).scale(), row_tile);
      }
    }
  });
}

}  // namespace pagoda::kernels::PAGODA_ISA

// kernels/int8_bf16/int_products.h by NEON with matrix products of bytes: a left-hand row is its
// high limbs and its low ones, the two rows of a product; a right-hand side is two columns of
// eight.
#pragma once

#include "kernels/int8_bf16/int_rows.h"
#include "kernels/int8_bf16/page_tiles.h"

namespace pagoda::kernels::PAGODA_ISA {

// Eight columns of a right-hand side that stands in lines of fours: pair i is columns 2 i, 2 i + 1
// with the fours of both lines.
struct ColumnPairs {
  int8x16_t pairs[4];
};
[[gnu::always_inline]] inline ColumnPairs load_column_pairs(const std::byte* first,
                                                            const std::byte* second) {
  const auto fours = [](const std::byte* p) {
    return vreinterpretq_s32_s8(vld1q_s8(reinterpret_cast<const std::int8_t*>(p)));
  };
  const auto zipped = [](int32x4x2_t z, int i) { return vreinterpretq_s8_s32(z.val[i]); };
  const int32x4x2_t low = vzipq_s32(fours(first), fours(second));
  const int32x4x2_t high = vzipq_s32(fours(first + 16), fours(second + 16));
  return {{zipped(low, 0), zipped(low, 1), zipped(high, 0), zipped(high, 1)}};
}

// 16 high limbs and 16 low ones as the left-hand sides of eight and eight.
struct LimbPairs {
  int8x16_t eights[2];
};
[[gnu::always_inline]] inline LimbPairs load_limb_pairs(const void* high, const void* low) {
  const auto halves = [](const void* p) {
    return vreinterpretq_s64_s8(vld1q_s8(static_cast<const std::int8_t*>(p)));
  };
  const int64x2_t h = halves(high);
  const int64x2_t l = halves(low);
  return {{vreinterpretq_s8_s64(vzip1q_s64(h, l)), vreinterpretq_s8_s64(vzip2q_s64(h, l))}};
}

// Sums of eight columns: {high 2i, high 2i + 1, low 2i, low 2i + 1}.
template <int Rows>
struct PairSums {
  int32x4_t sums[Rows][4];

  [[gnu::always_inline]] PairSums() {
    PAGODA_ISA_UNROLL for (auto& row : sums) {
      PAGODA_ISA_UNROLL for (int32x4_t& sum : row) { sum = vreinterpretq_s32_f32(fresh_zeros()); }
    }
  }
  // Calls use(place, which half of the eight columns, four floats) for all sums.
  template <class Use>
  [[gnu::always_inline]] void for_each_four(float* out, std::size_t stride, Use use) const {
    const auto parts = [](int32x4_t a, int32x4_t b) {
      const int64x2_t x = vreinterpretq_s64_s32(a);
      const int64x2_t y = vreinterpretq_s64_s32(b);
      const float32x4_t high = vcvtq_f32_s32(vreinterpretq_s32_s64(vzip1q_s64(x, y)));
      const float32x4_t low = vcvtq_f32_s32(vreinterpretq_s32_s64(vzip2q_s64(x, y)));
      return vfmaq_f32(low, high, vdupq_n_f32(static_cast<float>(kLimbBase)));
    };
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      use(out + r * stride, 0, parts(sums[r][0], sums[r][1]));
      use(out + r * stride + 4, 1, parts(sums[r][2], sums[r][3]));
    }
  }
  [[gnu::always_inline]] void put(float* out, std::size_t stride) const {
    for_each_four(out, stride, [](float* to, int, float32x4_t sum) { vst1q_f32(to, sum); });
  }
  // Times the scales of eight columns.
  [[gnu::always_inline]] void put_scaled(float* out, std::size_t stride, KeyScales by) const {
    const float32x4_t scales[2] = {vld1q_f32(by.scales), vld1q_f32(by.scales + 4)};
    if (by.first) {
      for_each_four(out, stride, [&](float* to, int half, float32x4_t sum) {
        vst1q_f32(to, vmulq_f32(sum, scales[half]));
      });
    } else {
      for_each_four(out, stride, [&](float* to, int half, float32x4_t sum) {
        vst1q_f32(to, vfmaq_f32(vld1q_f32(to), sum, scales[half]));
      });
    }
  }
};

template <int Rows>
[[gnu::always_inline]] inline void score_rows(LeftInts queries, std::size_t dimensions, KvTile keys,
                                              KeyScales scales, OutFloats out) {
  for (std::size_t half = 0; half < 2; ++half) {
    PairSums<Rows> of;
    const std::byte* line = keys.data + half * 32;
    for (std::size_t first = 0; first < dimensions; first += 16, line += 4 * keys.stride) {
      const ColumnPairs low = load_column_pairs(line, line + keys.stride);
      const ColumnPairs high = load_column_pairs(line + 2 * keys.stride, line + 3 * keys.stride);
      PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
        const std::byte* const limbs = queries.row(r) + query_offset(first);
        const LimbPairs left = load_limb_pairs(limbs, limbs + kBlockK);
        PAGODA_ISA_UNROLL for (int i = 0; i < 4; ++i) {
          of.sums[r][i] = vmmlaq_s32(of.sums[r][i], left.eights[0], low.pairs[i]);
        }
        PAGODA_ISA_UNROLL for (int i = 0; i < 4; ++i) {
          of.sums[r][i] = vmmlaq_s32(of.sums[r][i], left.eights[1], high.pairs[i]);
        }
      }
    }
    of.put_scaled(out.data + half * 8, out.stride, {scales.scales + half * 8, scales.first});
  }
}

template <int Rows>
[[gnu::always_inline]] inline void weigh_rows(LeftInts weights, const KvTile* values,
                                              std::size_t tiles, std::size_t column,
                                              OutFloats out) {
  for (std::size_t half = 0; half < 2; ++half) {
    PairSums<Rows> of;
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      const std::size_t stride = values[tile].stride;
      const std::byte* const fours = values[tile].data + 4 * (column + 8 * half);
      const ColumnPairs first = load_column_pairs(fours, fours + stride);
      const ColumnPairs second = load_column_pairs(fours + 2 * stride, fours + 3 * stride);
      PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
        const std::byte* const bytes = weights.row(r) + tile * kWeightTileBytes;
        const LimbPairs left = load_limb_pairs(bytes, bytes + 16);
        const auto add = [&](int8x16_t eight, const ColumnPairs& columns) {
          PAGODA_ISA_UNROLL for (int i = 0; i < 4; ++i) {
            of.sums[r][i] =
                vusmmlaq_s32(of.sums[r][i], vreinterpretq_u8_s8(eight), columns.pairs[i]);
          }
        };
        add(left.eights[0], first);
        add(left.eights[1], second);
      }
    }
    of.put(out.data + half * 8, out.stride);
  }
}

inline constexpr int kIntRows = 4;  // whose sums fit into registers

}  // namespace pagoda::kernels::PAGODA_ISA

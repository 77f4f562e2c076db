// Products of attention by NEON: sums of up to three rows stay in registers from the first step to
// the last. Right-hand sides are read where they stand.
#pragma once

#include "kernels/int8_bf16/attention_pages.h"
#include "kernels/int8_bf16/bf16_dot_neon.h"

namespace pagoda::kernels::PAGODA_ISA {

// Rows of a left-hand side, bf16, and of the floats they give.
struct LeftRows {
  const std::byte* data;
  std::size_t stride;  // bytes
};
struct OutRows {
  float* data;
  std::size_t stride;  // floats
};

// 4 * Quarters columns of even-odd reductions.
template <int Rows, int Quarters>
struct DotSums {
  float32x4_t total[Rows][Quarters];

  [[gnu::always_inline]] DotSums() {
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      PAGODA_ISA_UNROLL for (int i = 0; i < Quarters; ++i) total[r][i] = fresh_zeros();
    }
  }
  template <int Pairs>
  [[gnu::always_inline]] void add_step(LeftRows a, const std::byte* b, std::size_t b_stride) {
    EvenOddSums<Rows, Quarters> sums;
    sums.template add_lines<Pairs>(a.data, a.stride, b, b_stride);
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      PAGODA_ISA_UNROLL for (int i = 0; i < Quarters; ++i) {
        total[r][i] = vaddq_f32(total[r][i], vaddq_f32(sums.even[r][i], sums.odd[r][i]));
      }
    }
  }
  [[gnu::always_inline]] void put(OutRows out) const {
    PAGODA_ISA_UNROLL for (std::size_t r = 0; r < Rows; ++r) {
      PAGODA_ISA_UNROLL for (std::size_t i = 0; i < Quarters; ++i) {
        vst1q_f32(out.data + r * out.stride + 4 * i, total[r][i]);
      }
    }
  }
};

// Calls use<Rows, Quarters>(first row, first column) for 16 columns of all rows: as many chains of
// additions as the units can be kept busy with, in as many registers as there are.
template <class Use>
[[gnu::always_inline]] inline void for_row_blocks(std::size_t rows, Use use) {
  std::size_t row = 0;
  const auto halves = [&]<int Rows>() {
    use.template operator()<Rows, 2>(row, std::size_t{0});
    use.template operator()<Rows, 2>(row, std::size_t{8});
    row += Rows;
  };
  while (rows - row >= 3) halves.template operator()<3>();
  if (rows - row == 2) return halves.template operator()<2>();
  if (rows - row == 1) use.template operator()<1, 4>(row, std::size_t{0});
}

// out[row][key] for 16 keys: scores of `rows` queries of `steps` steps of 32 dimensions.
inline void score_keys(LeftRows queries, std::size_t rows, std::size_t steps, KvTile keys,
                       OutRows out) {
  for_row_blocks(rows, [&]<int Rows, int Quarters>(std::size_t row, std::size_t column) {
    DotSums<Rows, Quarters> sums;
    for (std::size_t step = 0; step < steps; ++step) {
      sums.template add_step<kStepDimensions / 2>(
          {queries.data + row * queries.stride + step * kLine, queries.stride},
          keys.data + step * (kStepDimensions / 2) * keys.stride + 4 * column, keys.stride);
    }
    sums.put({out.data + row * out.stride + column, out.stride});
  });
}

// out[row][column], …: 16 columns of the values of `tiles` tiles of keys, weighed.
inline void weigh_values(LeftRows weights, std::size_t rows, const KvTile* values,
                         std::size_t tiles, std::size_t first_column, OutRows out) {
  for_row_blocks(rows, [&]<int Rows, int Quarters>(std::size_t row, std::size_t column) {
    DotSums<Rows, Quarters> sums;
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      sums.template add_step<kKeyTile / 2>(
          {weights.data + row * weights.stride + tile * 2 * kKeyTile, weights.stride},
          values[tile].data + 4 * (first_column + column), values[tile].stride);
    }
    sums.put({out.data + row * out.stride + first_column + column, out.stride});
  });
}

}  // namespace pagoda::kernels::PAGODA_ISA

// kernels/int8_bf16/bf16_dot.h by NEON with bf16.
#pragma once

#include "kernels/int8_bf16/simd.h"
#include "kernels/int8_bf16/tile_view.h"

namespace pagoda::kernels::PAGODA_ISA {

// sum + even, or odd, terms of b times element `Lane` of a. By assembly: GCC 12 forgets that only
// the first 16 registers have elements that can be named. Volatile: in the order they are written
// in, sum after sum, they do not wait for each other.
template <int Lane>
[[gnu::always_inline]] inline void add_even(float32x4_t& sum, bfloat16x8_t b, bfloat16x8_t a) {
  asm volatile("bfmlalb %0.4s, %1.8h, %2.h[%3]" : "+w"(sum) : "w"(b), "x"(a), "i"(Lane));
}
template <int Lane>
[[gnu::always_inline]] inline void add_odd(float32x4_t& sum, bfloat16x8_t b, bfloat16x8_t a) {
  asm volatile("bfmlalt %0.4s, %1.8h, %2.h[%3]" : "+w"(sum) : "w"(b), "x"(a), "i"(Lane));
}

// 4 * Quarters columns of one step of even-odd reductions. BFMLALB and BFMLALT are what these are
// made of: fused multiply-adds of the even terms and of the odd ones, both factors bf16.
template <int Rows, int Quarters>
struct EvenOddSums {
  float32x4_t even[Rows][Quarters];
  float32x4_t odd[Rows][Quarters];

  [[gnu::always_inline]] EvenOddSums() {
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      PAGODA_ISA_UNROLL for (int i = 0; i < Quarters; ++i) {
        even[r][i] = fresh_zeros();
        odd[r][i] = fresh_zeros();
      }
    }
  }

  // `Pairs` lines of b, a multiple of 4.
  template <int Pairs>
  [[gnu::always_inline]] void add_lines(const std::byte* a, std::size_t a_stride,
                                        const std::byte* b, std::size_t b_stride) {
    PAGODA_ISA_UNROLL for (std::size_t k = 0; k < Pairs; k += 4, b += 4 * b_stride) {
      bfloat16x8_t fours[Rows];
      PAGODA_ISA_UNROLL for (std::size_t r = 0; r < Rows; ++r) {
        fours[r] = vld1q_bf16(reinterpret_cast<const bfloat16_t*>(a + r * a_stride + 4 * k));
      }
      add_line<0>(fours, b);
      add_line<1>(fours, b + b_stride);
      add_line<2>(fours, b + 2 * b_stride);
      add_line<3>(fours, b + 3 * b_stride);
    }
  }

 private:
  // One of the four pairs that `a` has of each row.
  template <int Pair>
  [[gnu::always_inline]] void add_line(const bfloat16x8_t (&a)[Rows], const std::byte* b) {
    PAGODA_ISA_UNROLL for (int i = 0; i < Quarters; ++i) {
      const bfloat16x8_t part = vld1q_bf16(reinterpret_cast<const bfloat16_t*>(b) + 8 * i);
      PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
        add_even<2 * Pair>(even[r][i], part, a[r]);
        add_odd<2 * Pair + 1>(odd[r][i], part, a[r]);
      }
    }
  }
};

// `Rows` rows of c, of 16 pairs or 8.
template <int Rows>
[[gnu::always_inline]] inline void dot_rows(std::byte* c, TileView a, TileView b,
                                            std::size_t pairs) {
  EvenOddSums<Rows, 4> sums;
  for (std::size_t k = 0; k < pairs; k += 8) {
    sums.template add_lines<8>(a.data + 4 * k, a.stride, b.row(k), b.stride);
  }
  PAGODA_ISA_UNROLL for (std::size_t r = 0; r < Rows; ++r) {
    float* const row = reinterpret_cast<float*>(c) + kLanes * r;
    PAGODA_ISA_UNROLL for (int i = 0; i < 4; ++i) {
      vst1q_f32(row + 4 * i,
                vaddq_f32(vld1q_f32(row + 4 * i), vaddq_f32(sums.even[r][i], sums.odd[r][i])));
    }
  }
}

}  // namespace pagoda::kernels::PAGODA_ISA

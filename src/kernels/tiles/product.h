// Rows of a product of tiles (kernels/tiles/tile.h) where the CPU has no unit for it.
#pragma once

#include "kernels/tiles/simd.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

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

// 4 * Quarters columns of one step of pair sums. BFMLALB and BFMLALT are what these are made of:
// fused multiply-adds of the even terms and of the odd ones, both factors bf16.
template <int Rows, int Quarters>
struct PairSums {
  float32x4_t even[Rows][Quarters];
  float32x4_t odd[Rows][Quarters];

  [[gnu::always_inline]] PairSums() {
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      PAGODA_TILE_UNROLL for (int i = 0; i < Quarters; ++i) {
        even[r][i] = fresh_zeros();
        odd[r][i] = fresh_zeros();
      }
    }
  }

  // `Pairs` lines of b, a multiple of 4.
  template <int Pairs>
  [[gnu::always_inline]] void add_lines(const std::byte* a, std::size_t a_stride,
                                        const std::byte* b, std::size_t b_stride) {
    PAGODA_TILE_UNROLL for (std::size_t k = 0; k < Pairs; k += 4, b += 4 * b_stride) {
      bfloat16x8_t fours[Rows];
      PAGODA_TILE_UNROLL for (std::size_t r = 0; r < Rows; ++r) {
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
    PAGODA_TILE_UNROLL for (int i = 0; i < Quarters; ++i) {
      const bfloat16x8_t part = vld1q_bf16(reinterpret_cast<const bfloat16_t*>(b) + 8 * i);
      PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
        add_even<2 * Pair>(even[r][i], part, a[r]);
        add_odd<2 * Pair + 1>(odd[r][i], part, a[r]);
      }
    }
  }
};

// `Rows` rows of c, of 16 pairs or 8.
template <int Rows>
[[gnu::always_inline]] inline void product_rows(std::byte* c, const std::byte* a,
                                                std::size_t a_stride, const std::byte* b,
                                                std::size_t b_stride, std::size_t pairs) {
  PairSums<Rows, 4> sums;
  for (std::size_t k = 0; k < pairs; k += 8) {
    sums.template add_lines<8>(a + 4 * k, a_stride, b + b_stride * k, b_stride);
  }
  PAGODA_TILE_UNROLL for (std::size_t r = 0; r < Rows; ++r) {
    float* const row = reinterpret_cast<float*>(c) + kLanes * r;
    PAGODA_TILE_UNROLL for (int i = 0; i < 4; ++i) {
      vst1q_f32(row + 4 * i,
                vaddq_f32(vld1q_f32(row + 4 * i), vaddq_f32(sums.even[r][i], sums.odd[r][i])));
    }
  }
}

#else

// One of a pair of bf16, as it stands in the high bits of a float.
inline F32x16 broadcast_half(std::uint32_t bits) {
  return broadcast(without_subnormals(__builtin_bit_cast(float, bits)));
}

// `Rows` rows of c. Lanes of b beyond its columns are computed and never stored.
template <int Rows>
[[gnu::always_inline]] inline void product_rows(std::byte* c, const std::byte* a,
                                                std::size_t a_stride, const std::byte* b,
                                                std::size_t b_stride, std::size_t pairs) {
  F32x16 even[Rows];
  F32x16 odd[Rows];
  PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) even[r] = odd[r] = broadcast(0.0f);
  for (std::size_t k = 0; k < pairs; ++k) {
    F32x16 b_even;
    F32x16 b_odd;
    load_bf16_pairs(b + b_stride * k, b_even, b_odd);
    PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
      std::uint32_t pair;
      __builtin_memcpy(&pair, a + a_stride * r + 4 * k, 4);
      even[r] = without_subnormals(fma(broadcast_half(pair << 16), b_even, even[r]));
      odd[r] = without_subnormals(fma(broadcast_half(pair & 0xFFFF0000u), b_odd, odd[r]));
    }
  }
  PAGODA_TILE_UNROLL for (int r = 0; r < Rows; ++r) {
    float* const row = reinterpret_cast<float*>(c) + kLanes * r;
    store(row, without_subnormals(load(row) + without_subnormals(even[r] + odd[r])));
  }
}

#endif

}  // namespace pagoda::kernels::PAGODA_TILE_SET

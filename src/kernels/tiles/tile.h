// Eight tile registers and the product of two of them: AMX where it is compiled in, else the same
// registers in memory and the same sums by fused multiply-adds.
//
//   a tile      up to 16 rows of up to 64 bytes
//   product     c[m][n] += pair sum over k of a[m][k] * b[k][n], one step of kernels/ops.h
//               a: [m][k] bf16;  b: [k / 2][n][2] bf16, pairs of k side by side;  c: [m][n] fp32
//   signed or unsigned product   c[m][n] += sum over k of a[m][k] * b[k][n], exact
//               a: [m][k] signed bytes;  b: [k / 4][n][4] such bytes;  c: [m][n] int32
//
// A thread uses tiles within a TileScope.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tiles/simd.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

struct TileShape {
  std::uint8_t rows = 0;
  std::uint8_t row_bytes = 0;
};

// What the CPU reads: palette 1, then a size for each register.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr void set(int tile, TileShape shape) {
    row_bytes[tile] = shape.row_bytes;
    rows[tile] = shape.rows;
  }
};
static_assert(sizeof(TileShapes) == 64);

#if defined(__AMX_BF16__)

class TileScope {
 public:
  TileScope() = default;
  ~TileScope() { asm volatile("tilerelease" ::: "memory"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

  // Inline assembly: gcc 12 declares the intrinsic to read 8 bytes only and drops other stores.
  void use(const TileShapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes) : "memory"); }
};

template <int T>
[[gnu::always_inline]] inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(T));
}
template <int T>
[[gnu::always_inline]] inline void tile_load(const void* p, std::size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(T) : "memory");
}
template <int T>
[[gnu::always_inline]] inline void tile_store(void* p, std::size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(T) : "memory");
}
template <int C, int A, int B>
[[gnu::always_inline]] inline void tile_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}
template <int C, int A, int B>
[[gnu::always_inline]] inline void tile_signed_product() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}
template <int C, int A, int B>
[[gnu::always_inline]] inline void tile_unsigned_product() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}

#else

struct TileRegisters {
  TileShapes shapes;
  alignas(64) std::byte bytes[8][1024];
};
inline TileRegisters& tile_registers() {
  thread_local TileRegisters registers;
  return registers;
}

class TileScope {
 public:
  void use(const TileShapes& shapes) { tile_registers().shapes = shapes; }
};

template <int T>
inline void tile_zero() {
  __builtin_memset(tile_registers().bytes[T], 0, 1024);
}
template <int T>
inline void tile_load(const void* p, std::size_t stride) {
  TileRegisters& registers = tile_registers();
  for (std::size_t row = 0; row < registers.shapes.rows[T]; ++row) {
    __builtin_memcpy(registers.bytes[T] + 64 * row, static_cast<const std::byte*>(p) + row * stride,
                     registers.shapes.row_bytes[T]);
  }
}
template <int T>
inline void tile_store(void* p, std::size_t stride) {
  const TileRegisters& registers = tile_registers();
  for (std::size_t row = 0; row < registers.shapes.rows[T]; ++row) {
    __builtin_memcpy(static_cast<std::byte*>(p) + row * stride, registers.bytes[T] + 64 * row,
                     registers.shapes.row_bytes[T]);
  }
}

template <class Right>
inline void byte_product(int c, int a, int b) {
  TileRegisters& registers = tile_registers();
  for (std::size_t m = 0; m < registers.shapes.rows[c]; ++m) {
    std::int32_t sums[kLanes];
    __builtin_memcpy(sums, registers.bytes[c] + 64 * m, sizeof(sums));
    for (std::size_t line = 0; line < registers.shapes.rows[b]; ++line) {
      std::int8_t left[4];
      Right right[kLanes][4];
      __builtin_memcpy(left, registers.bytes[a] + 64 * m + 4 * line, sizeof(left));
      __builtin_memcpy(right, registers.bytes[b] + 64 * line, sizeof(right));
      for (std::size_t n = 0; n < kLanes; ++n) {
        sums[n] += left[0] * right[n][0] + left[1] * right[n][1] + left[2] * right[n][2] +
                   left[3] * right[n][3];
      }
    }
    __builtin_memcpy(registers.bytes[c] + 64 * m, sums, sizeof(sums));
  }
}
template <int C, int A, int B>
inline void tile_signed_product() {
  byte_product<std::int8_t>(C, A, B);
}
template <int C, int A, int B>
inline void tile_unsigned_product() {
  byte_product<std::uint8_t>(C, A, B);
}

#if defined(__AVX512F__)

// `Rows` rows of c. Lanes of b beyond its columns are computed and never stored.
template <int Rows>
[[gnu::always_inline]] inline void product_rows(std::byte* c, const std::byte* a,
                                                const std::byte* b, std::size_t pairs) {
  __m512 even[Rows];
  __m512 odd[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) even[r] = odd[r] = _mm512_setzero_ps();
  for (std::size_t k = 0; k < pairs; ++k) {
    const __m512i both = _mm512_load_si512(b + 64 * k);
    const __m512 b_even = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
    const __m512 b_odd = _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(-65536)));
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      std::uint32_t pair;
      __builtin_memcpy(&pair, a + 64 * r + 4 * k, 4);
      even[r] = _mm512_fmadd_ps(
          _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(pair << 16))), b_even, even[r]);
      odd[r] = _mm512_fmadd_ps(
          _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(pair & 0xFFFF0000u))), b_odd,
          odd[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    float* const row = reinterpret_cast<float*>(c + 64 * r);
    _mm512_store_ps(row, _mm512_add_ps(_mm512_load_ps(row), _mm512_add_ps(even[r], odd[r])));
  }
}

template <int C, int A, int B>
inline void tile_product() {
  TileRegisters& registers = tile_registers();
  const std::size_t rows = registers.shapes.rows[C];
  const std::size_t pairs = registers.shapes.rows[B];
  std::byte* const c = registers.bytes[C];
  const std::byte* const a = registers.bytes[A];
  const std::byte* const b = registers.bytes[B];
  std::size_t row = 0;
  for (; row + 8 <= rows; row += 8) product_rows<8>(c + 64 * row, a + 64 * row, b, pairs);
  for (; row + 4 <= rows; row += 4) product_rows<4>(c + 64 * row, a + 64 * row, b, pairs);
  for (; row < rows; ++row) product_rows<1>(c + 64 * row, a + 64 * row, b, pairs);
}

#else

inline float pair_half(const std::byte* pair, int odd) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, pair + 2 * odd, 2);
  return without_subnormals(float_from_bf16(bits));
}

template <int C, int A, int B>
inline void tile_product() {
  TileRegisters& registers = tile_registers();
  const std::size_t columns = registers.shapes.row_bytes[C] / 4;
  const std::size_t pairs = registers.shapes.rows[B];
  for (std::size_t m = 0; m < registers.shapes.rows[C]; ++m) {
    float sums[2][kLanes] = {};
    for (std::size_t k = 0; k < pairs; ++k) {
      for (int odd = 0; odd < 2; ++odd) {
        const float a = pair_half(registers.bytes[A] + 64 * m + 4 * k, odd);
        for (std::size_t n = 0; n < columns; ++n) {
          const float b = pair_half(registers.bytes[B] + 64 * k + 4 * n, odd);
          sums[odd][n] = without_subnormals(std::fma(a, b, sums[odd][n]));
        }
      }
    }
    float c[kLanes];
    __builtin_memcpy(c, registers.bytes[C] + 64 * m, 4 * columns);
    for (std::size_t n = 0; n < columns; ++n) {
      c[n] = without_subnormals(c[n] + without_subnormals(sums[0][n] + sums[1][n]));
    }
    __builtin_memcpy(registers.bytes[C] + 64 * m, c, 4 * columns);
  }
}

#endif
#endif

}  // namespace pagoda::kernels::PAGODA_TILE_SET

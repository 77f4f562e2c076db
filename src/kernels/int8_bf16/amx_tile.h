// Eight tile registers and the product of two of them: AMX where it is compiled in, else the same
// registers in memory and the same sums by fused multiply-adds.
//
//   a tile      up to 16 rows of up to 64 bytes
//   product     c[m][n] += even-odd reduction over k of a[m][k] * b[k][n], one step of
//   kernels/ops.h
//               a: [m][k] bf16;  b: [k / 2][n][2] bf16, pairs of k side by side;  c: [m][n] fp32
//   signed or unsigned product   c[m][n] += sum over k of a[m][k] * b[k][n], exact
//               a: [m][k] bytes;  b: [k / 4][n][4] bytes, of either signed or not;  c: [m][n] int32
//
// A thread uses tiles within a TileScope.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/int8_bf16/simd.h"
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include "kernels/int8_bf16/bf16_dot_neon.h"
#elif !defined(__AMX_BF16__)
#include "kernels/int8_bf16/bf16_dot.h"
#endif

namespace pagoda::kernels::PAGODA_ISA {

struct AmxTileShape {
  std::uint8_t rows = 0;
  std::uint8_t row_bytes = 0;
};

// The operand of LDTILECFG: palette 1, then a size for each register.
struct alignas(64) AmxTileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr void set(int tile, AmxTileShape shape) {
    row_bytes[tile] = shape.row_bytes;
    rows[tile] = shape.rows;
  }
};
static_assert(sizeof(AmxTileConfig) == 64);

// Whether tiles are multiplied as such: by a unit for it, or in its place by plain C++. Vector
// instructions have better ways, and the same sums: on x86 only the sets of tiles are told so.
#if (defined(__AVX2__) && !defined(PAGODA_HAS_TILES)) || defined(__ARM_FEATURE_MATMUL_INT8)
inline constexpr bool kMultipliesTiles = false;
#else
inline constexpr bool kMultipliesTiles = true;
#endif

#if defined(__AMX_BF16__)

class TileScope {
 public:
  TileScope() = default;
  ~TileScope() { asm volatile("tilerelease" ::: "memory"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

  // Inline assembly: gcc 12 declares the intrinsic to read 8 bytes only and drops other stores.
  void use(const AmxTileConfig& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes) : "memory"); }
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
[[gnu::always_inline]] inline void tile_dpbf16ps() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}
template <int C, int A, int B>
[[gnu::always_inline]] inline void tile_dpbssd() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}
template <int C, int A, int B>
[[gnu::always_inline]] inline void tile_dpbsud() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}
template <int C, int A, int B>
[[gnu::always_inline]] inline void tile_dpbusd() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}

#else

// A tile of whole rows that was loaded stays where it was loaded from, which must not change while
// it is used; sums and tiles of narrow rows stand here.
struct TileRegisters {
  AmxTileConfig shapes;
  TileView rows[8];
  alignas(64) std::byte bytes[8][1024];
};
inline TileRegisters& tile_registers() {
  thread_local TileRegisters registers;
  return registers;
}

class TileScope {
 public:
  void use(const AmxTileConfig& shapes) { tile_registers().shapes = shapes; }
};

template <int T>
inline void tile_zero() {
  __builtin_memset(tile_registers().bytes[T], 0, 1024);
}
template <int T>
inline void tile_load(const void* p, std::size_t stride) {
  TileRegisters& registers = tile_registers();
  const TileView source = {static_cast<const std::byte*>(p), stride};
  registers.rows[T] = source;
  if (registers.shapes.row_bytes[T] == 64) return;
  registers.rows[T] = {registers.bytes[T], 64};
  for (std::size_t row = 0; row < registers.shapes.rows[T]; ++row) {
    __builtin_memcpy(registers.bytes[T] + 64 * row, source.row(row), registers.shapes.row_bytes[T]);
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

template <class Left, class Right>
inline void byte_product(int c, int a, int b) {
  TileRegisters& registers = tile_registers();
  for (std::size_t m = 0; m < registers.shapes.rows[c]; ++m) {
    std::int32_t sums[kLanes];
    __builtin_memcpy(sums, registers.bytes[c] + 64 * m, sizeof(sums));
    for (std::size_t line = 0; line < registers.shapes.rows[b]; ++line) {
      Left left[4];
      Right right[kLanes][4];
      __builtin_memcpy(left, registers.rows[a].row(m) + 4 * line, sizeof(left));
      __builtin_memcpy(right, registers.rows[b].row(line), sizeof(right));
      for (std::size_t n = 0; n < kLanes; ++n) {
        sums[n] += left[0] * right[n][0] + left[1] * right[n][1] + left[2] * right[n][2] +
                   left[3] * right[n][3];
      }
    }
    __builtin_memcpy(registers.bytes[c] + 64 * m, sums, sizeof(sums));
  }
}
template <int C, int A, int B>
inline void tile_dpbssd() {
  byte_product<std::int8_t, std::int8_t>(C, A, B);
}
template <int C, int A, int B>
inline void tile_dpbsud() {
  byte_product<std::int8_t, std::uint8_t>(C, A, B);
}
template <int C, int A, int B>
inline void tile_dpbusd() {
  byte_product<std::uint8_t, std::int8_t>(C, A, B);
}

template <int C, int A, int B>
inline void tile_dpbf16ps() {
  TileRegisters& registers = tile_registers();
  const std::size_t rows = registers.shapes.rows[C];
  const std::size_t pairs = registers.shapes.rows[B];
  const TileView b = registers.rows[B];
  std::size_t row = 0;
  const auto multiply = [&]<int Rows>() {
    dot_rows<Rows>(registers.bytes[C] + 64 * row, registers.rows[A].from(row), b, pairs);
    row += Rows;
  };
  while (row + kRowsInRegisters <= rows) multiply.template operator()<kRowsInRegisters>();
  // Rows that are left go together too: one alone waits for its own sums.
  if constexpr (kRowsInRegisters > 4) {
    if (row + 4 <= rows) multiply.template operator()<4>();
  }
  if constexpr (kRowsInRegisters > 3) {
    if (row + 3 == rows) return multiply.template operator()<3>();
  }
  if constexpr (kRowsInRegisters > 2) {
    if (row + 2 == rows) return multiply.template operator()<2>();
  }
  if (row < rows) multiply.template operator()<1>();
}

#endif

}  // namespace pagoda::kernels::PAGODA_ISA

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

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/tiles/simd.h"
#if !defined(__AMX_BF16__)
#include "kernels/tiles/product.h"
#endif

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
inline constexpr std::size_t kTileRowBytes = 64;
inline constexpr int kFirstRight = 6;

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

// Factors stay in memory, where they must not change before they were multiplied; sums are here.
// Right-hand sides, always 6 and 7, are read in rows of 64 bytes: shorter rows are copied.
struct TileRegisters {
  struct Factor {
    const std::byte* data;
    std::size_t stride;
  };
  TileShapes shapes;
  Factor factors[8];
  alignas(64) std::byte sums[4][1024];
  alignas(64) std::byte rights[2][1024];
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
  TileRegisters& registers = tile_registers();
  __builtin_memset(registers.sums[T], 0, kTileRowBytes * registers.shapes.rows[T]);
}
template <int T>
inline void tile_load(const void* p, std::size_t stride) {
  TileRegisters& registers = tile_registers();
  const auto* const data = static_cast<const std::byte*>(p);
  registers.factors[T] = {data, stride};
  if constexpr (T >= kFirstRight) {
    if (registers.shapes.row_bytes[T] == kTileRowBytes) return;
    std::byte* const copy = registers.rights[T - kFirstRight];
    for (std::size_t row = 0; row < registers.shapes.rows[T]; ++row) {
      __builtin_memcpy(copy + kTileRowBytes * row, data + row * stride,
                       registers.shapes.row_bytes[T]);
    }
    registers.factors[T] = {copy, kTileRowBytes};
  }
}
template <int T>
inline void tile_store(void* p, std::size_t stride) {
  const TileRegisters& registers = tile_registers();
  for (std::size_t row = 0; row < registers.shapes.rows[T]; ++row) {
    __builtin_memcpy(static_cast<std::byte*>(p) + row * stride,
                     registers.sums[T] + kTileRowBytes * row, registers.shapes.row_bytes[T]);
  }
}

template <class Right>
inline void byte_product(int c, int a, int b) {
  TileRegisters& registers = tile_registers();
  const TileRegisters::Factor& lefts = registers.factors[a];
  const TileRegisters::Factor& rights = registers.factors[b];
  for (std::size_t m = 0; m < registers.shapes.rows[c]; ++m) {
    std::int32_t sums[kLanes];
    __builtin_memcpy(sums, registers.sums[c] + kTileRowBytes * m, sizeof(sums));
    for (std::size_t line = 0; line < registers.shapes.rows[b]; ++line) {
      std::int8_t left[4];
      Right right[kLanes][4];
      __builtin_memcpy(left, lefts.data + lefts.stride * m + 4 * line, sizeof(left));
      __builtin_memcpy(right, rights.data + rights.stride * line, sizeof(right));
      for (std::size_t n = 0; n < kLanes; ++n) {
        sums[n] += left[0] * right[n][0] + left[1] * right[n][1] + left[2] * right[n][2] +
                   left[3] * right[n][3];
      }
    }
    __builtin_memcpy(registers.sums[c] + kTileRowBytes * m, sums, sizeof(sums));
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

template <int C, int A, int B>
inline void tile_product() {
  TileRegisters& registers = tile_registers();
  const std::size_t rows = registers.shapes.rows[C];
  const std::size_t pairs = registers.shapes.rows[B];
  const TileRegisters::Factor& a = registers.factors[A];
  const TileRegisters::Factor& b = registers.factors[B];
  const auto multiply = [&]<int Rows>(std::size_t row) {
    product_rows<Rows>(registers.sums[C] + kTileRowBytes * row, a.data + a.stride * row, a.stride,
                       b.data, b.stride, pairs);
  };
  std::size_t row = 0;
  for (; row + kRowsInRegisters <= rows; row += kRowsInRegisters) {
    multiply.template operator()<kRowsInRegisters>(row);
  }
  constexpr int kSome = (kRowsInRegisters + 1) / 2;
  for (; row + kSome <= rows; row += kSome) multiply.template operator()<kSome>(row);
  for (; row < rows; ++row) multiply.template operator()<1>(row);
}

#endif

}  // namespace pagoda::kernels::PAGODA_TILE_SET

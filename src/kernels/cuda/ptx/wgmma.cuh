// wgmma: the matrix product that the four warps of a warpgroup compute together.
//
//   c[64, N] (+)= a[64, 16] b[16, N]     N = 32, 64, 128 or 256; factors in bf16 or fp16, c in fp32
//
// b lies in shared memory, a in shared memory or in registers. One warp's part of a and c is the
// fragment of mma.m16n8k16: c[j] holds columns 8 j to 8 j + 7, and has the bits that
// mma.m16n8k16 gives. A product runs on while the warps do: wgmma_fence() comes before the first
// of a group, wgmma_commit() after the last, and c is ready after wgmma_wait().
#pragma once

#include <cstdint>

#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

enum class WgmmaType { kBf16, kFp16 };
// Which index of b is contiguous in shared memory: k, as in a row of weights or keys, or n, as in a
// row of values.
enum class MajorB { kK = 0, kN = 1 };

// A factor without swizzle: blocks of 8 rows by 8 columns (128 bytes each), the next 8 columns 128
// bytes on, the next 8 rows 1024 bytes on.
__device__ __forceinline__ std::uint64_t smem_descriptor(const void* at) {
  return std::uint64_t{(smem_address(at) & 0x3FFFFu) >> 4} | std::uint64_t{128 >> 4} << 16 |
         std::uint64_t{1024 >> 4} << 32;
}

// A factor with 128-byte swizzle: blocks of rows of 64 values (128 bytes). The 16-byte piece c of
// row r stands at r * 128 + (c ^ r % 8) * 16. A block begins at a multiple of 1024 bytes.
inline constexpr std::uint32_t kBlockRowBytes = 128;

__device__ __forceinline__ std::uint32_t swizzled(std::uint32_t row, std::uint32_t piece) {
  return row * kBlockRowBytes + (piece ^ row % 8) * 16;
}

// The next 16 values of k are 32 bytes on where k is contiguous, else 2048.
__device__ __forceinline__ std::uint64_t swizzled_descriptor(std::uint32_t address) {
  return std::uint64_t{(address & 0x3FFFFu) >> 4} | std::uint64_t{8192 >> 4} << 16 |
         std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62;
}

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until all but the last kRunning groups have ended.
template <int kRunning>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kRunning) : "memory");
}

// The operands of c for N columns: their constraints, and their names in the instruction.
#define PAGODA_C8(j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define PAGODA_C32(j) PAGODA_C8(j), PAGODA_C8(j + 1), PAGODA_C8(j + 2), PAGODA_C8(j + 3)
#define PAGODA_C_32 PAGODA_C32(0)
#define PAGODA_C_64 PAGODA_C_32, PAGODA_C32(4)
#define PAGODA_C_128 PAGODA_C_64, PAGODA_C32(8), PAGODA_C32(12)
#define PAGODA_C_256 PAGODA_C_128, PAGODA_C32(16), PAGODA_C32(20), PAGODA_C32(24), PAGODA_C32(28)
#define PAGODA_NAMES_32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define PAGODA_NAMES_64 \
  PAGODA_NAMES_32       \
  ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define PAGODA_NAMES_128                                                                      \
  PAGODA_NAMES_64                                                                             \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53," \
  "%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define PAGODA_NAMES_256                                                                      \
  PAGODA_NAMES_128                                                                            \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85," \
  "%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,"    \
  "%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,"     \
  "%123,%124,%125,%126,%127"

// The instruction. `factors`, `scale_d` and `majors` are the names of operands that follow those of
// c; __VA_ARGS__ holds the constraints of a and b.
#define PAGODA_WGMMA_OF(type, n, factors, scale_d, majors)                              \
  "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" PAGODA_NAMES_##n \
      "}, " factors ", " scale_d ", 1, 1, " majors ";"
#define PAGODA_WGMMA(n, factors, majors, ...)                     \
  if constexpr (kType == WgmmaType::kBf16) {                      \
    asm volatile(PAGODA_WGMMA_OF("bf16", n, factors, "1", majors) \
                 : PAGODA_C_##n                                   \
                 : __VA_ARGS__, "n"(static_cast<int>(kMajorB)));  \
  } else {                                                        \
    asm volatile(PAGODA_WGMMA_OF("f16", n, factors, "1", majors)  \
                 : PAGODA_C_##n                                   \
                 : __VA_ARGS__, "n"(static_cast<int>(kMajorB)));  \
  }
#define PAGODA_WGMMA_IF(n, add_name, factors, majors, ...)                                   \
  if constexpr (kType == WgmmaType::kBf16) {                                                 \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add_name                            \
                 ", 0;\n" PAGODA_WGMMA_OF("bf16", n, factors, "add", majors) "\n}\n"         \
                 : PAGODA_C_##n                                                              \
                 : __VA_ARGS__, "n"(static_cast<int>(kMajorB)), "r"(static_cast<int>(add))); \
  } else {                                                                                   \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add_name                            \
                 ", 0;\n" PAGODA_WGMMA_OF("f16", n, factors, "add", majors) "\n}\n"          \
                 : PAGODA_C_##n                                                              \
                 : __VA_ARGS__, "n"(static_cast<int>(kMajorB)), "r"(static_cast<int>(add))); \
  }

// c += a b, with a in shared memory. Not the function below with a constant: the predicate there
// makes nvcc unroll the loops of the bf16 GEMM otherwise, to 10 % more code.
template <WgmmaType kType = WgmmaType::kBf16, MajorB kMajorB = MajorB::kK, int kTiles>
__device__ __forceinline__ void wgmma(float (&c)[kTiles][4], std::uint64_t a, std::uint64_t b) {
  if constexpr (kTiles == 4) {
    PAGODA_WGMMA(32, "%16, %17", "0, %18", "l"(a), "l"(b));
  } else if constexpr (kTiles == 8) {
    PAGODA_WGMMA(64, "%32, %33", "0, %34", "l"(a), "l"(b));
  } else if constexpr (kTiles == 16) {
    PAGODA_WGMMA(128, "%64, %65", "0, %66", "l"(a), "l"(b));
  } else {
    static_assert(kTiles == 32);
    PAGODA_WGMMA(256, "%128, %129", "0, %130", "l"(a), "l"(b));
  }
}

// c = a b, or c += a b with `add`.
template <WgmmaType kType = WgmmaType::kBf16, MajorB kMajorB = MajorB::kK, int kTiles>
__device__ __forceinline__ void wgmma(float (&c)[kTiles][4], std::uint64_t a, std::uint64_t b,
                                      bool add) {
  if constexpr (kTiles == 4) {
    PAGODA_WGMMA_IF(32, "%19", "%16, %17", "0, %18", "l"(a), "l"(b));
  } else if constexpr (kTiles == 8) {
    PAGODA_WGMMA_IF(64, "%35", "%32, %33", "0, %34", "l"(a), "l"(b));
  } else if constexpr (kTiles == 16) {
    PAGODA_WGMMA_IF(128, "%67", "%64, %65", "0, %66", "l"(a), "l"(b));
  } else {
    static_assert(kTiles == 32);
    PAGODA_WGMMA_IF(256, "%131", "%128, %129", "0, %130", "l"(a), "l"(b));
  }
}

// The same with a in registers.
#define PAGODA_A "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
template <WgmmaType kType = WgmmaType::kBf16, MajorB kMajorB = MajorB::kK, int kTiles>
__device__ __forceinline__ void wgmma(float (&c)[kTiles][4], const std::uint32_t (&a)[4],
                                      std::uint64_t b, bool add) {
  if constexpr (kTiles == 4) {
    PAGODA_WGMMA_IF(32, "%22", "{%16,%17,%18,%19}, %20", "%21", PAGODA_A, "l"(b));
  } else if constexpr (kTiles == 8) {
    PAGODA_WGMMA_IF(64, "%38", "{%32,%33,%34,%35}, %36", "%37", PAGODA_A, "l"(b));
  } else {
    static_assert(kTiles == 16);
    PAGODA_WGMMA_IF(128, "%70", "{%64,%65,%66,%67}, %68", "%69", PAGODA_A, "l"(b));
  }
}

#undef PAGODA_A
#undef PAGODA_WGMMA_IF
#undef PAGODA_WGMMA
#undef PAGODA_WGMMA_OF
#undef PAGODA_NAMES_256
#undef PAGODA_NAMES_128
#undef PAGODA_NAMES_64
#undef PAGODA_NAMES_32
#undef PAGODA_C_256
#undef PAGODA_C_128
#undef PAGODA_C_64
#undef PAGODA_C_32
#undef PAGODA_C32
#undef PAGODA_C8

}  // namespace pagoda::kernels::cuda

// The warpgroup's matrix product as attention needs it: 64 query rows by 16 columns, from shared
// memory or from registers, times 16 rows of keys or values.
//
// Sides in shared memory are blocks of 64 values (128 bytes) a row, 16-byte pieces swizzled:
// piece c of row r stands at r * 128 + (c ^ r % 8) * 16. A block begins at a multiple of 1024
// bytes.
#pragma once

#include <cstdint>

#include "kernels/cuda/ptx/ptx.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace pagoda::kernels::cuda {

inline constexpr std::uint32_t kBlockRowBytes = 128;

__device__ __forceinline__ std::uint32_t swizzled(std::uint32_t row, std::uint32_t piece) {
  return row * kBlockRowBytes + (piece ^ row % 8) * 16;
}

// A block in shared memory as a side of a product. Where the sum runs along rows, the next 16
// values of all of them are 32 bytes on; where it runs from row to row, 2048.
__device__ __forceinline__ std::uint64_t swizzled_descriptor(std::uint32_t address) {
  return std::uint64_t{(address & 0x3FFFFu) >> 4} | std::uint64_t{8192 >> 4} << 16 |
         std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62;
}

#define PAGODA_SUM4(c, j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define PAGODA_SUM32(c, j)                                                                \
  PAGODA_SUM4(c, j), PAGODA_SUM4(c, j + 1), PAGODA_SUM4(c, j + 2), PAGODA_SUM4(c, j + 3), \
      PAGODA_SUM4(c, j + 4), PAGODA_SUM4(c, j + 5), PAGODA_SUM4(c, j + 6), PAGODA_SUM4(c, j + 7)
#define PAGODA_NAMES32                                                                 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22," \
  "%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define PAGODA_NAMES64                                                    \
  PAGODA_NAMES32                                                          \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48," \
  "%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

// score (+)= a b^T: rows of both sides are summed along.
#define PAGODA_SCORE(type)                                                            \
  asm volatile(                                                                       \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                    \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" PAGODA_NAMES32 \
      "}, %32, %33, p, 1, 1, 0, 0;\n}\n"                                              \
      : PAGODA_SUM32(c, 0)                                                            \
      : "l"(a), "l"(b), "n"(kAdd))
template <bool kBrain, int kAdd>
__device__ __forceinline__ void wgmma_qk(float (&c)[8][4], std::uint64_t a, std::uint64_t b) {
  if constexpr (kBrain) {
    PAGODA_SCORE("bf16");
  } else {
    PAGODA_SCORE("f16");
  }
}

// values (+)= a b: a in registers, b summed from row to row.
#define PAGODA_VALUES64(type)                                                         \
  asm volatile(                                                                       \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                    \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" PAGODA_NAMES32 \
      "}, {%32,%33,%34,%35}, %36, p, 1, 1, 1;\n}\n"                                   \
      : PAGODA_SUM32(c, 0)                                                            \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd))
template <bool kBrain, int kAdd>
__device__ __forceinline__ void wgmma_pv(float (&c)[8][4], const std::uint32_t (&a)[4],
                                         std::uint64_t b) {
  if constexpr (kBrain) {
    PAGODA_VALUES64("bf16");
  } else {
    PAGODA_VALUES64("f16");
  }
}

#define PAGODA_VALUES128(type)                                                         \
  asm volatile(                                                                        \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"                                     \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" PAGODA_NAMES64 \
      "}, {%64,%65,%66,%67}, %68, p, 1, 1, 1;\n}\n"                                    \
      : PAGODA_SUM32(c, 0), PAGODA_SUM32(c, 8)                                         \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd))
// Two blocks, one right after the other.
template <bool kBrain, int kAdd>
__device__ __forceinline__ void wgmma_pv(float (&c)[16][4], const std::uint32_t (&a)[4],
                                         std::uint64_t b) {
  if constexpr (kBrain) {
    PAGODA_VALUES128("bf16");
  } else {
    PAGODA_VALUES128("f16");
  }
}

#undef PAGODA_SCORE
#undef PAGODA_VALUES64
#undef PAGODA_VALUES128
#undef PAGODA_NAMES64
#undef PAGODA_NAMES32
#undef PAGODA_SUM32
#undef PAGODA_SUM4

// What was written to shared memory by stores and is known to be there may be multiplied.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// An arrival as soon as all such copies of this thread so far are there.
__device__ __forceinline__ void cp_async_mbarrier_arrive(std::uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(smem_address(barrier))
               : "memory");
}

// Has the phase ended? mbarrier_wait() that does not wait.
__device__ __forceinline__ bool mbarrier_test_wait(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t ended;
  asm volatile(
      "{\n"
      ".reg .pred ended;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
      "selp.u32 %0, 1, 0, ended;\n"
      "}\n"
      : "=r"(ended)
      : "r"(smem_address(barrier)), "r"(parity)
      : "memory");
  return ended != 0;
}

}  // namespace pagoda::kernels::cuda

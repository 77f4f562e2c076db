// The fp16 numbers that codes of the cache stand for, four bytes of codes at a time, before they
// are multiplied by their scale. All of them are exact.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/ptx/ptx.cuh"
#include "kv/memory/codec.h"
#include "kv/memory/page_layout.h"

namespace pagoda::kernels::cuda {

using kv::memory::Element;

constexpr bool has_codes(Element element) { return kv::memory::unit_bytes(element) == 1; }

// The pairs of fp16 in four bytes: of bytes 0 and 1, of bytes 2 and 3; of kInt4 those of low
// halves, then those of high halves.
template <Element kElement>
inline constexpr int kCodePairs = kElement == Element::kInt4 ? 4 : 2;

// The levels above 0 of kInt4 as fp16, four lower or upper bytes of them in a word.
struct Int4LevelBytes {
  std::uint32_t low[2] = {};
  std::uint32_t high[2] = {};

  constexpr Int4LevelBytes() {
    for (std::uint32_t i = 0; i < kv::memory::kInt4Codes / 2; ++i) {
      const auto level =
          static_cast<std::uint32_t>(kv::memory::kInt4Levels[kv::memory::kInt4Codes / 2 + i]);
      std::uint32_t exponent = 0;
      while (level >> (exponent + 1) != 0) ++exponent;
      const std::uint32_t bits = (15 + exponent) << 10 | ((level << (10 - exponent)) & 0x3FFu);
      low[i / 4] |= (bits & 0xFFu) << (i % 4 * 8);
      high[i / 4] |= (bits >> 8) << (i % 4 * 8);
    }
  }
};
inline constexpr Int4LevelBytes kInt4LevelBytes;
static_assert(kInt4LevelBytes.low[1] >> 24 == 0xF0 && kInt4LevelBytes.high[1] >> 24 == 0x57,
              "127 is 0x57F0");

// Codes below 8 are negative: 7 - u is their level above 0, u - 8 that of the others.
__device__ __forceinline__ void widen_int4(std::uint32_t codes, std::uint32_t (&pairs)[4]) {
  constexpr Int4LevelBytes kBytes;
  const std::uint32_t negative = ~codes & 0x88888888u;
  const std::uint32_t levels = (codes ^ (negative - (negative >> 3))) & 0x77777777u;
  const std::uint32_t low_signs = negative << 4;  // bit 7 of a byte: of its low half
#pragma unroll
  for (int i = 0; i < 2; ++i) {  // bytes 2i and 2i + 1
    const std::uint32_t chosen = i == 0 ? levels : levels >> 16;
    const std::uint32_t low = __byte_perm(kBytes.low[0], kBytes.low[1], chosen & 0xFFFFu);
    const std::uint32_t high = __byte_perm(kBytes.high[0], kBytes.high[1], chosen & 0xFFFFu);
    const int spread = i == 0 ? 0x1404 : 0x3424;
    pairs[i] = __byte_perm(low, high, 0x6240) ^ (__byte_perm(low_signs, 0, spread) & 0x80008000u);
    pairs[2 + i] =
        __byte_perm(low, high, 0x7351) ^ (__byte_perm(negative, 0, spread) & 0x80008000u);
  }
}

// A byte of int8 becomes 1024 + 128 + code, whose last ten bits are the byte's with its sign
// flipped.
__device__ __forceinline__ void widen_int8(std::uint32_t codes, std::uint32_t (&pairs)[2]) {
  const std::uint32_t flipped = codes ^ 0x80808080u;
  const __half2 offset = __half2half2(__ushort_as_half(0x6480));  // 1152
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t raised = __byte_perm(flipped, 0x64646464u, i == 0 ? 0x4140 : 0x4342);
    const __half2 pair = __hsub2(*reinterpret_cast<const __half2*>(&raised), offset);
    pairs[i] = *reinterpret_cast<const std::uint32_t*>(&pair);
  }
}

template <Element kElement>
__device__ __forceinline__ void widen(std::uint32_t codes,
                                      std::uint32_t (&pairs)[kCodePairs<kElement>]) {
  static_assert(has_codes(kElement));
  if constexpr (kElement == Element::kInt4) {
    widen_int4(codes, pairs);
  } else if constexpr (kElement == Element::kInt8) {
    widen_int8(codes, pairs);
  } else if constexpr (kElement == Element::kE5M2) {  // the upper byte of an fp16
    pairs[0] = __byte_perm(codes, 0, 0x1404);
    pairs[1] = __byte_perm(codes, 0, 0x3424);
  } else {
    pairs[0] = fp16_from_e4m3(static_cast<std::uint16_t>(codes));
    pairs[1] = fp16_from_e4m3(static_cast<std::uint16_t>(codes >> 16));
  }
}

// A pair of fp16 times a pair of scales, each rounded to the nearest.
__device__ __forceinline__ std::uint32_t scaled(std::uint32_t pair, __half2 scale) {
  const __half2 product = __hmul2(*reinterpret_cast<const __half2*>(&pair), scale);
  return *reinterpret_cast<const std::uint32_t*>(&product);
}

// A chunk of 16 bytes of codes, all of one scale, as pieces of 16 bytes of fp16: [piece][pair]. Two
// of eight-bit codes, in the order of their dimensions; of kInt4 four.
template <Element kElement>
__device__ __forceinline__ void widen_chunk(const uint4& codes, __half scale,
                                            uint4 (&pieces)[kCodePairs<kElement>]) {
  constexpr bool kScaled = kv::memory::scale_bytes(kElement) > 0;
  const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
  std::uint32_t wide[4 * kCodePairs<kElement>];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    std::uint32_t pairs[kCodePairs<kElement>];
    widen<kElement>(words[i], pairs);
#pragma unroll
    for (int k = 0; k < kCodePairs<kElement>; ++k) {
      if (kScaled) pairs[k] = scaled(pairs[k], __half2half2(scale));
      wide[k / 2 * 8 + i * 2 + k % 2] = pairs[k];
    }
  }
#pragma unroll
  for (int i = 0; i < kCodePairs<kElement>; ++i) {
    pieces[i] = make_uint4(wide[4 * i], wide[4 * i + 1], wide[4 * i + 2], wide[4 * i + 3]);
  }
}

}  // namespace pagoda::kernels::cuda

// A chunk of quantised weights in a lane's registers: read from shared memory at once, dequantised
// to bf16 factors step by step.
#pragma once

#include <type_traits>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

__device__ __forceinline__ std::uint32_t sub_bf16x2(std::uint32_t left, std::uint32_t right) {
  const __nv_bfloat162 pair = __hsub2(*reinterpret_cast<const __nv_bfloat162*>(&left),
                                      *reinterpret_cast<const __nv_bfloat162*>(&right));
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

__device__ __forceinline__ std::uint32_t mul_bf16x2(std::uint32_t left, std::uint32_t right) {
  const __nv_bfloat162 pair = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&left),
                                      *reinterpret_cast<const __nv_bfloat162*>(&right));
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

template <WeightFormat kFormat>
struct QuantisedWeights {
  static constexpr bool kNibbles = has_nibbles(kFormat);
  static constexpr bool kHasMinima = kFormat == WeightFormat::kInt4Min;
  static constexpr int kGroups = kFormat == WeightFormat::kInt8Group16 ? 4 : 2;
  static constexpr int kSteps = 4 / kGroups;  // of a group

  std::uint32_t codes[kNibbles ? 4 : 8];
  std::uint32_t scales[kGroups];  // of rows g and g + 8
  std::uint32_t minima[kHasMinima ? kGroups : 1];

  __device__ __forceinline__ void read(const std::byte* chunk) {
    const std::uint32_t lane = threadIdx.x % 32;
    *reinterpret_cast<uint4*>(codes) = *reinterpret_cast<const uint4*>(chunk + lane * 16);
    if constexpr (!kNibbles) {
      *reinterpret_cast<uint4*>(codes + 4) =
          *reinterpret_cast<const uint4*>(chunk + 512 + lane * 16);
    }
    const std::byte* const factors = chunk + (kNibbles ? 512 : 1024) + lane / 4 * (4 * kGroups);
    read_pairs(factors, scales);
    if constexpr (kHasMinima) read_pairs(factors + 8 * 4 * kGroups, minima);
  }

  // The two scales of a group.
  __device__ __forceinline__ float2 scale(int group) const {
    if constexpr (kFormat == WeightFormat::kFp4) {
      return make_float2(__uint_as_float(scales[group] << 16),
                         __uint_as_float(scales[group] & 0xFFFF0000u));
    } else {
      return __half22float2(*reinterpret_cast<const __half2*>(&scales[group]));
    }
  }
  __device__ __forceinline__ float2 minimum(int group) const {
    return __half22float2(*reinterpret_cast<const __half2*>(&minima[group]));
  }

  // Dequantises the left factor of a step. All differences and products are exact.
  __device__ __forceinline__ void unpack(int step, std::uint32_t (&a)[4]) const {
    if constexpr (kFormat == WeightFormat::kFp4) {
      // Sign, two bits of exponent and one of mantissa in the places of a bf16, times 2^126.
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t code = codes[step] >> (4 * i);
        const std::uint32_t bits = (code & 0x00070007u) << 6 | (code & 0x00080008u) << 12;
        a[i] = mul_bf16x2(bits, 0x7E807E80u);
      }
    } else if constexpr (kNibbles) {
      // 0x4300 | q is the bf16 128 + q; the zero point of Q4_0 is 8.
      constexpr std::uint32_t kZero = kFormat == WeightFormat::kInt4 ? 0x43084308u : 0x43004300u;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i] = sub_bf16x2(((codes[step] >> (4 * i)) & 0x000F000Fu) | 0x43004300u, kZero);
      }
    } else {
      a[0] = two_codes(codes[2 * step], 0x4140);
      a[1] = two_codes(codes[2 * step], 0x4342);
      a[2] = two_codes(codes[2 * step + 1], 0x4140);
      a[3] = two_codes(codes[2 * step + 1], 0x4342);
    }
  }

 private:
  static __device__ __forceinline__ void read_pairs(const std::byte* at,
                                                    std::uint32_t (&pairs)[kGroups]) {
    using Word = std::conditional_t<kGroups == 4, uint4, uint2>;
    *reinterpret_cast<Word*>(pairs) = *reinterpret_cast<const Word*>(at);
  }
  // Converts two bytes in two's complement: b is (128 + (b & 127)) - (128 + (b & 128)), and bf16
  // holds both terms.
  static __device__ __forceinline__ std::uint32_t two_codes(std::uint32_t word,
                                                            std::uint32_t selector) {
    const std::uint32_t bytes = __byte_perm(word, 0, selector);
    return sub_bf16x2((bytes & 0x007F007Fu) | 0x43004300u, (bytes & 0x00800080u) | 0x43004300u);
  }
};

// sum = fma(scale, U, sum) for rows g and g + 8; the same with minima and X.
template <int kTiles>
__device__ __forceinline__ void add_scaled(float (&sum)[kTiles][4], const float (&u)[kTiles][4],
                                           float2 scales) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    sum[n][0] = __fmaf_rn(scales.x, u[n][0], sum[n][0]);
    sum[n][1] = __fmaf_rn(scales.x, u[n][1], sum[n][1]);
    sum[n][2] = __fmaf_rn(scales.y, u[n][2], sum[n][2]);
    sum[n][3] = __fmaf_rn(scales.y, u[n][3], sum[n][3]);
  }
}

inline constexpr std::uint32_t kTwoOnes = 0x3F803F80u;  // two bf16 ones, for a left factor of ones

}  // namespace pagoda::kernels::cuda

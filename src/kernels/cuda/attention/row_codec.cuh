// The codecs of kv/memory/codec.h and the rotation of kernels/hadamard.h for a row in a warp's
// registers, to the same bits: lane i has dimensions i, i + 32, …, and 0 beyond the last.
#pragma once

#include <cuda_fp16.h>

#include <cfloat>
#include <cstdint>

#include "kernels/cuda/ptx/ptx.cuh"
#include "kv/memory/codec.h"

namespace pagoda::kernels::cuda {

using kv::memory::Element;

// Multiplies each block of dimensions, a power of two, by the orthonormal Hadamard matrix.
template <std::uint32_t kLaneValues>
__device__ __forceinline__ void rotate_blocks(float (&values)[kLaneValues], std::uint32_t block) {
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (std::uint32_t apart = 1; apart < 32; apart *= 2) {
    if (apart >= block) break;
#pragma unroll
    for (float& value : values) {
      const float other = __shfl_xor_sync(~0u, value, apart);
      value = (lane & apart) != 0 ? other - value : value + other;
    }
  }
#pragma unroll
  for (std::uint32_t apart = 1; apart < kLaneValues; apart *= 2) {
    if (32 * apart >= block) break;
#pragma unroll
    for (std::uint32_t i = 0; i < kLaneValues; ++i) {
      if ((i & apart) != 0 || i + apart >= kLaneValues) continue;
      const float a = values[i];
      const float b = values[i + apart];
      values[i] = a + b;
      values[i + apart] = a - b;
    }
  }
  const float scale = __fdiv_rn(1.0f, __fsqrt_rn(static_cast<float>(block)));
#pragma unroll
  for (float& value : values) value *= scale;
}

__device__ __forceinline__ float largest_of_lanes(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

// The largest magnitude of a row without NaN, in all lanes.
template <std::uint32_t kLaneValues>
__device__ __forceinline__ float largest_magnitude(const float (&values)[kLaneValues]) {
  float largest = 0;
#pragma unroll
  for (const float value : values) largest = fmaxf(largest, fabsf(value));
  return largest_of_lanes(largest);
}

template <std::uint32_t kLaneValues>
__device__ __forceinline__ void store_e4m3(const float (&values)[kLaneValues], std::uint32_t dim,
                                           std::byte* data, std::byte* scale) {
  const float largest = largest_magnitude(values);
  // 448 is 1.75 * 2^8: a mantissa above 1.75 carries into the exponent.
  const int carried = static_cast<int>((__float_as_uint(largest) + 0x1FFFFFu) >> 23);
  const int exponent = min(max(carried - 127 - 8, -15), 7);
  const float inverse = __int_as_float((127 - exponent) << 23);
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    if (lane + 32 * i >= dim) break;
    data[lane + 32 * i] = static_cast<std::byte>(e4m3_from_float(values[i] * inverse));
  }
  if (lane != 0) return;
  *reinterpret_cast<__half*>(scale) = __float2half_rn(__int_as_float((127 + exponent) << 23));
}

template <std::uint32_t kLaneValues>
__device__ __forceinline__ void store_e5m2(const float (&values)[kLaneValues], std::uint32_t dim,
                                           std::byte* data) {
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    if (lane + 32 * i >= dim) break;
    data[lane + 32 * i] = static_cast<std::byte>(e5m2_from_float(values[i]));
  }
}

// Rows are finite, or their first value is NaN: fill_nan(), or latents whose value is 0 then.
template <std::uint32_t kLaneValues>
__device__ __forceinline__ bool is_nan_row(const float (&values)[kLaneValues]) {
  bool any = false;
#pragma unroll
  for (const float value : values) any = any || isnan(value);
  return __any_sync(~0u, any);
}

inline constexpr std::uint16_t kNanScale = 0x7E00;

template <std::uint32_t kLaneValues>
__device__ __forceinline__ void store_int8(const float (&values)[kLaneValues], std::uint32_t dim,
                                           std::byte* data, std::byte* scale) {
  const float quotient = __fdiv_rn(largest_magnitude(values), kv::memory::kInt8CodeMax);
  const float exact = quotient < FLT_MIN ? 0.0f : quotient;
  std::uint16_t bits = __half_as_ushort(__float2half_rn(exact));
  if (__half2float(__ushort_as_half(bits)) < exact) ++bits;  // the next one
  float inverse = 0;
  if (bits != 0) inverse = __fdiv_rn(1.0f, __half2float(__ushort_as_half(bits)));
  if (is_nan_row(values)) {
    bits = kNanScale;
    inverse = 0;
  }
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    if (lane + 32 * i >= dim) break;
    const float steps = inverse == 0 ? 0.0f : values[i] * inverse;
    const float cut = fminf(fmaxf(steps, -kv::memory::kInt8CodeMax), kv::memory::kInt8CodeMax);
    data[lane + 32 * i] = static_cast<std::byte>(__float2int_rn(cut));
  }
  if (lane == 0) *reinterpret_cast<std::uint16_t*>(scale) = bits;
}

// The sum over a group of 32, halves of it added to each other until one is left.
__device__ __forceinline__ float group_sum(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// The tables of kInt4 where device code has them: levels above 0, and what is halfway between them.
struct Int4Tables {
  static constexpr int kLevels = static_cast<int>(kv::memory::kInt4Codes / 2);
  static constexpr int kTries = sizeof(kv::memory::kInt4Tries) / sizeof(float);
  float levels[kLevels] = {};
  float halfway[kLevels - 1] = {};
  float tries[kTries] = {};

  constexpr Int4Tables() {
    for (int i = 0; i < kLevels; ++i) levels[i] = kv::memory::kInt4Levels[kLevels + i];
    for (int i = 0; i + 1 < kLevels; ++i) halfway[i] = (levels[i] + levels[i + 1]) / 2;
    for (int i = 0; i < kTries; ++i) tries[i] = kv::memory::kInt4Tries[i];
  }
};

// Which of the levels is nearest to a magnitude.
__device__ __forceinline__ int nearest_level(float magnitude) {
  constexpr Int4Tables kTables;
  int nearest = 0;
#pragma unroll
  for (int i = 0; i + 1 < Int4Tables::kLevels; ++i) {
    nearest += magnitude > kTables.halfway[i] ? 1 : 0;
  }
  return nearest;
}
__device__ __forceinline__ float level_of(int nearest) {
  constexpr Int4Tables kTables;
  float level = kTables.levels[0];
#pragma unroll
  for (int i = 1; i < Int4Tables::kLevels; ++i) {
    if (nearest == i) level = kTables.levels[i];
  }
  return level;
}

// Returns this lane's code of a group of 32 values, one a lane, and in its upper half the group's
// scale. A function of its own, since a row of 512 dimensions would have it 16 times.
inline __noinline__ __device__ std::uint32_t int4_code(float value) {
  if (__any_sync(~0u, isnan(value))) return std::uint32_t{kNanScale} << 16;
  const float largest = largest_of_lanes(fabsf(value));
  if (!(largest >= kv::memory::kInt4Smallest)) return 0;
  constexpr Int4Tables kTables;
  const float z = value * __fdiv_rn(1.0f, largest);
  float best_factor = 0;
  float best_scale = 0;
  float best = 0;
#pragma unroll
  for (int i = 0; i < Int4Tables::kTries; ++i) {
    const float factor = kTables.tries[i];
    const float level = level_of(nearest_level(fabsf(z * factor)));
    const float products = group_sum(level * fabsf(z));
    const float tried = __fdiv_rn(products, group_sum(level * level));
    const float gain = products * tried;
    if (gain <= best) continue;
    best = gain;
    best_scale = tried;
    best_factor = factor;
  }
  const std::uint32_t scale = __half_as_ushort(__float2half_rn(best_scale * largest));
  const int nearest = nearest_level(fabsf(z * best_factor));
  return static_cast<std::uint32_t>(signbit(value) ? 7 - nearest : 8 + nearest) | scale << 16;
}

// A group of dimensions is a value of every lane.
template <std::uint32_t kLaneValues>
__device__ __forceinline__ void store_int4(const float (&values)[kLaneValues], std::uint32_t dim,
                                           std::byte* data, std::byte* scale,
                                           std::size_t scale_step) {
  static_assert(kv::memory::kScaleGroup == 32 && kv::memory::kInt4HalfStep == 16);
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    if (32 * i >= dim) break;
    const std::uint32_t coded = int4_code(values[i]);
    const std::uint32_t upper = __shfl_down_sync(~0u, coded, 16);
    if (lane < 16) {
      data[16 * i + lane] = static_cast<std::byte>((coded & 15u) | (upper & 15u) << 4);
    }
    if (lane == 0) {
      *reinterpret_cast<std::uint16_t*>(scale + i * scale_step) =
          static_cast<std::uint16_t>(coded >> 16);
    }
  }
}

}  // namespace pagoda::kernels::cuda

// One head of a query, key or value on its way into the cache's element: rotated, checked, rounded.
#pragma once

#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"
#include "kv/memory/element_range.h"

namespace pagoda::kernels::cuda {

using kv::memory::Element;

__device__ __forceinline__ std::uint16_t rounded(Element element, float value) {
  return element == Element::kBF16 ? bf16_bits(value) : __half_as_ushort(__float2half_rn(value));
}

// The rotations of a position, [pairs].
struct Rotation {
  const float* cosines;
  const float* sines;
  std::uint32_t pairs;
  bool adjacent;

  // Value d of `head`, rotated where it has a partner.
  __device__ float of(const float* head, std::uint32_t d) const {
    if (d >= 2 * pairs) return head[d];
    const std::uint32_t pair = adjacent ? d / 2 : d % pairs;
    const bool second = adjacent ? d % 2 != 0 : d >= pairs;
    const float a = head[adjacent ? 2 * pair : pair];
    const float b = head[adjacent ? 2 * pair + 1 : pair + pairs];
    return second ? a * sines[pair] + b * cosines[pair] : a * cosines[pair] - b * sines[pair];
  }
};

// One head of a query, key or value in a warp's registers: lane i has dimensions i, i + 32, …
template <std::uint32_t kLaneValues>
struct LaneRow {
  float values[kLaneValues] = {};
  std::byte* data;
  std::byte* scale = nullptr;

  // Whether every value is finite once it is rounded to the element.
  __device__ bool finite(Element element) const {
    const float limit = kv::memory::first_infinite(element);
    bool all = true;
#pragma unroll
    for (const float value : values) all = all && fabsf(value) < limit;
    return __all_sync(~0u, all);
  }
  __device__ void fill_nan() { fill(__int_as_float(0x7FC00000)); }
  __device__ void fill(float value) {
#pragma unroll
    for (float& own : values) own = value;
  }
  __device__ void store(Element element, std::uint32_t dim) const {
    if (element == Element::kE4M3) return store_codes(dim);
    const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (std::uint32_t i = 0; i < kLaneValues; ++i) {
      if (lane + 32 * i >= dim) break;
      reinterpret_cast<std::uint16_t*>(data)[lane + 32 * i] = rounded(element, values[i]);
    }
  }
  // Quantises the row to e4m3 codes and a scale, as kv/memory/codec.h does.
  __device__ void store_codes(std::uint32_t dim) const {
    float largest = 0;
#pragma unroll
    for (const float value : values) largest = fmaxf(largest, fabsf(value));
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    }
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
};

// Marks the row's sequence. Several warps may write; they write the same word.
__device__ __forceinline__ void note_nonfinite(std::uint32_t* nonfinite,
                                               const BatchToken& batch_token) {
  if (nonfinite != nullptr && threadIdx.x % 32 == 0) nonfinite[batch_token.sequence] = 1;
}

}  // namespace pagoda::kernels::cuda

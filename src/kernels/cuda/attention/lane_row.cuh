// One head of a query, key or value on its way into the cache's element: rotated, checked, rounded.
#pragma once

#include "kernels/cuda/attention/row_codec.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"
#include "kv/memory/element_range.h"

namespace pagoda::kernels::cuda {

__device__ __forceinline__ std::uint16_t rounded(Element element, float value) {
  return is_bf16_factor(element) ? bf16_bits(value) : __half_as_ushort(__float2half_rn(value));
}

// The rotations of a position, [pairs].
struct Rotation {
  const float* cosines;
  const float* sines;
  std::uint32_t pairs;
  bool adjacent;

  // That of row `row` of the batch, at `position`.
  __device__ static Rotation of(const RopeAndStoreKv& job, std::uint32_t row,
                                std::uint32_t position) {
    const std::size_t at = std::size_t{place(job, row, position)} * job.pairs;
    return {.cosines = job.cosines + at,
            .sines = job.sines + at,
            .pairs = job.pairs,
            .adjacent = job.adjacent};
  }
  // Its place in tables of rotations and factors.
  __device__ static std::uint32_t place(const RopeAndStoreKv& job, std::uint32_t row,
                                        std::uint32_t position) {
    if (position == kNoPosition) return 0;
    return position < job.table_positions ? position : job.table_positions + row;
  }

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

// The position at which a row under a KV policy looks at its sinks, where it sees a gap.
struct SinkQuery {
  bool there = false;
  std::uint32_t position = 0;

  __device__ static SinkQuery of(const RopeAndStoreKv& job, const BatchToken& token) {
    if (token.position == kNoPosition || job.sink_query == nullptr) return {};
    const SeenKeys seen(job.window, job.sequences[token.sequence]);
    return {seen.has_gap(token.position), seen.sinks + seen.window - 1};
  }
};

// One head of a query, key or value in a warp's registers: lane i has dimensions i, i + 32, …
// Without kCodes rows are of 16-bit elements.
template <std::uint32_t kLaneValues, bool kCodes = true>
struct LaneRow {
  float values[kLaneValues] = {};
  std::byte* data;
  std::byte* scale = nullptr;
  std::size_t scale_step = 0;

  // Multiplies blocks of `block` dimensions by the Hadamard matrix: the operations of
  // kernels/hadamard.h.
  __device__ __forceinline__ void rotate(std::uint32_t block) {
    if (kCodes && block != 0) rotate_blocks(values, block);
  }
  // Whether every value is finite once it is rounded to the element.
  __device__ __forceinline__ bool finite(Element element) const {
    const float limit = kv::memory::first_infinite_on_gpu(element);
    bool all = true;
#pragma unroll
    for (const float value : values) all = all && fabsf(value) < limit;
    return __all_sync(~0u, all);
  }
  __device__ void fill_nan() { fill(__int_as_float(0x7FC00000)); }
  __device__ __forceinline__ void fill(float value) {
#pragma unroll
    for (float& own : values) own = value;
  }
  __device__ __forceinline__ void store(Element element, std::uint32_t dim) const {
    if constexpr (kCodes) {
      switch (element) {
        case Element::kE4M3:
          return store_e4m3(values, dim, data, scale);
        case Element::kE5M2:
          return store_e5m2(values, dim, data);
        case Element::kInt8:
          return store_int8(values, dim, data, scale);
        case Element::kInt4:
          return store_int4(values, dim, data, scale, scale_step);
        default:
          break;
      }
    }
    store_wide(element, dim);
  }
  // Stores a row of a 16-bit element.
  __device__ __forceinline__ void store_wide(Element element, std::uint32_t dim) const {
    const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (std::uint32_t i = 0; i < kLaneValues; ++i) {
      if (lane + 32 * i >= dim) break;
      reinterpret_cast<std::uint16_t*>(data)[lane + 32 * i] = rounded(element, values[i]);
    }
  }
};

// Marks the row in its sequence's word, which keeps the first of the rows that are marked.
__device__ __forceinline__ void note_nonfinite(std::uint32_t* nonfinite,
                                               const BatchToken& batch_token) {
  if (nonfinite == nullptr || threadIdx.x % 32 != 0) return;
  atomicMax(nonfinite + batch_token.sequence, nonfinite_word(batch_token.position));
}

}  // namespace pagoda::kernels::cuda

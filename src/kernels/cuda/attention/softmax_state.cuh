// Partial softmax results of query rows, and how two of them merge: shared by the attention kernels
// and the kernel that merges splits.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kNothing = -INFINITY;  // the maximum of a row that has seen no key
inline constexpr float kLowest = -1e30f;      // the least maximum of a row that has seen one

// How two partial results become one; the left one has the earlier keys. The factor of a side that
// has seen no key is negative.
struct MergeFactors {
  float top;
  float left;
  float right;
};
__device__ __forceinline__ MergeFactors merge_factors(float left_top, float right_top) {
  if (right_top == kNothing) return {left_top, 1.0f, -1.0f};
  if (left_top == kNothing) return {right_top, -1.0f, 1.0f};
  const float top = fmaxf(left_top, right_top);
  return {top, ex2_approx(left_top - top), ex2_approx(right_top - top)};
}
// Where one side has seen no key the other stays as it is, bit for bit. A side that has seen only
// NaN keys does count: its factor is 0, and 0 * NaN is NaN.
__device__ __forceinline__ float merged(const MergeFactors& by, float left, float right) {
  const float both = __fmaf_rn(left, by.left, right * by.right);
  return by.right < 0 ? left : by.left < 0 ? right : both;
}

// The sums of one query row over some keys, in four of its dimensions.
struct RowSums {
  float values[4] = {0, 0, 0, 0};
  float sum = 0;
  float top = kNothing;

  __device__ __forceinline__ void merge(const RowSums& right) {
    const MergeFactors by = merge_factors(top, right.top);
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = merged(by, values[i], right.values[i]);
    sum = merged(by, sum, right.sum);
    top = by.top;
  }
  // Merges the sink of a head, which comes last.
  __device__ __forceinline__ void merge_sink(float logit) {
    RowSums sink;
    sink.sum = 1;
    sink.top = logit * kLog2E;
    merge(sink);
  }
  // A partial result in memory is [dim] values, then the maximum and the sum of weights.
  __device__ __forceinline__ void store_partial(float* row, int dim, int dimension) const {
    *reinterpret_cast<float4*>(row + dimension) =
        make_float4(values[0], values[1], values[2], values[3]);
    if (dimension == 0) *reinterpret_cast<float2*>(row + dim) = make_float2(top, sum);
  }
};

// Where the results of one query head of one row of the batch go. Heads stand side by side; the
// columns of latents' heads, which another product takes apart, fill whole chunks.
// Rotated results go to floats, side by side.
struct ResultRow {
  const PagedAttention& job;
  std::uint32_t row;
  std::uint32_t head;

  __device__ __forceinline__ ResultRow(const PagedAttention& job, std::uint32_t row,
                                       std::uint32_t head)
      : job(job), row(row), head(head) {}
  __device__ __forceinline__ Bf16* at(std::uint32_t dimension) const {
    const std::uint32_t column = head * attention_columns(job.pages.layout) + dimension;
    return job.activations + activation_index(row, column, job.rows);
  }
  __device__ __forceinline__ float* rotated(std::uint32_t dimension) const {
    return job.rotated + (std::size_t{row} * job.heads + head) * job.pages.layout.value_dim +
           dimension;
  }
  // Stores the results of a pair of dimensions.
  __device__ __forceinline__ void store(std::uint32_t dimension, float low, float high) const {
    if (job.rotated != nullptr) {
      *reinterpret_cast<float2*>(rotated(dimension)) = make_float2(low, high);
    } else {
      *reinterpret_cast<std::uint32_t*>(at(dimension)) = pack_bf16(low, high);
    }
  }
  // The columns behind the head's last that have to be zeros.
  __device__ __forceinline__ std::uint32_t padding() const {
    if (job.rotated != nullptr) return 0;
    const std::uint32_t each = attention_columns(job.pages.layout);
    const std::uint32_t within = each - job.pages.layout.value_dim;
    if (within > 0 || head + 1 < job.heads) return within;
    return chunks_of(job.heads * each) * kChunkColumns - job.heads * each;
  }
};

// A query row of a tile: which token of the sequence, which head of the group.
struct QueryRow {
  std::uint32_t token;
  std::uint32_t head;
  bool there;
};
__device__ __forceinline__ QueryRow query_row(std::uint32_t tile, std::uint32_t row,
                                              std::uint32_t group, std::uint32_t tokens) {
  const std::uint32_t index = tile * kQueryRows + row;
  const std::uint32_t token = index / group;
  return {token, index - token * group, token < tokens};
}
// The number of query rows in a tile; the last tile of a sequence may have fewer than kQueryRows.
__device__ __forceinline__ std::uint32_t rows_of_tile(std::uint32_t tile, std::uint32_t group,
                                                      std::uint32_t tokens) {
  return min(kQueryRows, tokens * group - tile * kQueryRows);
}

}  // namespace pagoda::kernels::cuda

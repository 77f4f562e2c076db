// The softmax of one query tile that can still be merged with others: what attend and merge share.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/tensor_core.cuh"

namespace pagoda::kernels::cuda {

inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kNothing = -INFINITY;  // the top of a row that has seen no key

// How two partial results become one; the left one has the earlier keys.
struct MergeFactors {
  float top;
  float left;
  float right;
};
__device__ __forceinline__ MergeFactors merge_factors(float left_top, float right_top) {
  if (right_top == kNothing) return {left_top, 1.0f, 0.0f};
  const float top = fmaxf(left_top, right_top);
  return {top, exp2_fast(left_top - top), exp2_fast(right_top - top)};
}
// With nothing on one side the other stays as it is, bit for bit.
__device__ __forceinline__ float merged(const MergeFactors& by, float left, float right) {
  if (by.right == 0.0f && by.left == 1.0f) return left;
  if (by.left == 0.0f && by.right == 1.0f) return right;
  return __fmaf_rn(left, by.left, right * by.right);
}

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
// Query rows that a tile really has.
__device__ __forceinline__ std::uint32_t rows_of_tile(std::uint32_t tile, std::uint32_t group,
                                                      std::uint32_t tokens) {
  return min(kQueryRows, tokens * group - tile * kQueryRows);
}

}  // namespace pagoda::kernels::cuda

// The online softmax of a warpgroup's 64 query rows: a thread has two rows, as the tensor core
// deals them out. The order of every sum is that of paged_attention.cuh.
#pragma once

#include "kernels/cuda/attention/softmax_state.cuh"
#include "kernels/cuda/attention/wide_producer.cuh"

namespace pagoda::kernels::cuda {

// Scores, then weights, of a tile: [key / 8][fragment].
using WideScores = float[kKeyTile / 8][4];

// A thread's two query rows.
struct WideRows {
  int low[2];   // the first and the last key that a row sees
  int high[2];  // -1: no such row
  int all_low;  // the same of keys that every row of the warpgroup sees
  int all_high;

  __device__ __forceinline__ bool sees(int r, int key) const {
    return key >= low[r] && key <= high[r];
  }
  __device__ __forceinline__ bool all_see(int base) const {
    return base >= all_low && base + int{kKeyTile} - 1 <= all_high;
  }
  // The floor of a row's maximum over a tile that begins at key `base`: kLowest where the row sees
  // any of its keys, else kNothing.
  __device__ __forceinline__ float least(int r, int base) const {
    return base <= high[r] && base + int{kKeyTile} - 1 >= low[r] ? kLowest : kNothing;
  }
  // Masks the scores of keys that a row does not see: their weights become 0.
  __device__ __forceinline__ void hide(int base, WideScores& score) const {
    if (all_see(base)) return;
    base += static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if (!sees(i % 4 / 2, base + i / 4 * 8 + i % 2)) score[i / 4][i % 4] = kNothing;
    }
  }
};

// The state of the online softmax over the keys of a split so far. Each of the four lanes that
// share a row has a part of the sum.
struct WideSoftmax {
  float top[2];
  float sum[2];
  float shrink[2];  // the factor by which the last tile rescaled all before it

  __device__ __forceinline__ void clear() {
    top[0] = top[1] = kNothing;
    sum[0] = sum[1] = 0;
  }
  // Turns the scores of a tile into weights and adds them to the sum.
  __device__ __forceinline__ void add(float scale, const float (&least)[2], WideScores& score) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float best[4];  // any order gives the same
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const float value = score[i / 2][2 * r + i % 2];
        best[i % 4] = i < 4 ? value : fmaxf(best[i % 4], value);
      }
      best[0] = fmaxf(fmaxf(best[0], best[1]), fmaxf(best[2], best[3]));
      best[0] = fmaxf(best[0], __shfl_xor_sync(~0u, best[0], 1));
      best[0] = fmaxf(best[0], __shfl_xor_sync(~0u, best[0], 2));
      const float before = top[r];
      top[r] = fmaxf(before, fmaxf(best[0], least[r]) * scale);
      const float from = top[r] == kNothing ? 0.0f : top[r];
      shrink[r] = ex2_approx(before - from);
      float added = 0;
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        float& value = score[i / 2][2 * r + i % 2];
        value = ex2_approx(__fmaf_rn(value, scale, -from));
        added += value;
      }
      sum[r] = __fmaf_rn(sum[r], shrink[r], added);
    }
  }
  __device__ __forceinline__ float quad_sum(int r) const {
    const float pair = sum[r] + __shfl_xor_sync(~0u, sum[r], 1);
    return pair + __shfl_xor_sync(~0u, pair, 2);
  }
};

// Weights packed as the left factor of a product, 16 keys a step.
using WideWeights = std::uint32_t[kKeyTile / 16][4];

template <WgmmaType kType>
__device__ __forceinline__ void pack_weights(const WideScores& weight, WideWeights& packed) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const float(&pair)[4] = weight[i / 4 * 2 + i % 4 / 2];
    packed[i / 4][i % 4] = kType == WgmmaType::kBf16
                               ? pack_bf16(pair[i % 2 * 2], pair[i % 2 * 2 + 1])
                               : pack_fp16(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
  }
}

// The sums of all splits before the present one. Values are in shared memory: registers hold those
// of a split and of a tile, and three would not fit.
template <int kOut>
struct WideTotals {
  float4 (&values)[kOut / 8][128];
  float top[2];
  float sum[2];

  // Adds a split as merged() does; store(j, sums) gets four values.
  template <class Store>
  __device__ __forceinline__ void add(const float (&split)[kOut / 8][4],
                                      const float (&split_top)[2], const float (&split_sum)[2],
                                      Store&& store) {
    MergeFactors by[2];
    bool left_alone[2];
    bool right_alone[2];
    for (int r = 0; r < 2; ++r) {
      by[r] = merge_factors(top[r], split_top[r]);
      right_alone[r] = top[r] == kNothing;
      left_alone[r] = !right_alone[r] && by[r].right < 0;
      sum[r] = merged(by[r], sum[r], split_sum[r]);
      top[r] = by[r].top;
    }
    const auto both = [&](int j, float(&left)[4], float(&all)[4]) {
      const float4 four = values[j][threadIdx.x % 128];
      left[0] = four.x, left[1] = four.y, left[2] = four.z, left[3] = four.w;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        all[i] = __fmaf_rn(left[i], by[i / 2].left, split[j][i] * by[i / 2].right);
      }
    };
    float left[4];
    float all[4];
    if (__any_sync(~0u, left_alone[0] || left_alone[1] || right_alone[0] || right_alone[1])) {
#pragma unroll
      for (int j = 0; j < kOut / 8; ++j) {
        both(j, left, all);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (right_alone[i / 2]) all[i] = split[j][i];
          if (left_alone[i / 2]) all[i] = left[i];
        }
        store(j, all);
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < kOut / 8; ++j) {
      both(j, left, all);
      store(j, all);
    }
  }
  __device__ __forceinline__ void keep(int j, const float (&all)[4]) {
    values[j][threadIdx.x % 128] = {all[0], all[1], all[2], all[3]};
  }
};

}  // namespace pagoda::kernels::cuda

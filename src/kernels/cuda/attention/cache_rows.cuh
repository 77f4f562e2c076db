// Rows of keys and values on their way from pages to tensor cores: copied to shared memory as they
// are, a stage of some rows at a time, and turned into factors in registers.
//
// In shared memory the 16-byte chunks of a row are exchanged so that eight rows' chunks of the same
// dimensions lie in different banks. Codes become fp16 (ops.h), four bytes of a lane two registers
// or, of kInt4, four; a step's dimensions and keys are dealt to lanes in the order in which they
// come: a step is 16 bytes of eight-bit codes, or the low or the high halves of 16 bytes.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/attention/cache_codes.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

template <Element kElement, int kDim, int kStageKeys>
struct CacheRows {
  static constexpr bool kCodes = has_codes(kElement);
  static constexpr bool kScaled = kv::memory::scale_bytes(kElement) > 0;
  static constexpr int kRowBytes = static_cast<int>(kv::memory::row_bytes(kElement, kDim));
  static constexpr int kScaleBytes = static_cast<int>(kv::memory::scale_bytes(kElement));
  static constexpr int kGroups = static_cast<int>(kv::memory::scale_groups(kElement, kDim));
  static constexpr int kKeys = kStageKeys;
  static constexpr int kStageBytes = kKeys * (kRowBytes + kGroups * kScaleBytes);

  // The offset of a chunk of 16 bytes within a stage.
  __device__ static constexpr int place(int row, int chunk) {
    const int other = kRowBytes >= 128 ? row % 8 : kRowBytes == 64 ? row / 2 % 4 : row / 4 % 2;
    return row * kRowBytes + (chunk ^ other) * 16;
  }

  // Copies 16 rows from `from` on, and their scales, whose groups are scale_step bytes apart, to
  // row `row` of a stage. Rows outside of [first, last], counted from 0 to 15, become 0.
  __device__ __forceinline__ static void copy(std::uint32_t stage, int row, const std::byte* from,
                                              const std::byte* scales, std::size_t scale_step,
                                              int first, int last) {
    if (first <= 0 && last >= 15) {
      copy_codes<true>(stage, row, from, first, last);
    } else {
      copy_codes<false>(stage, row, from, first, last);
    }
    if constexpr (kScaled) {
      const int lane = threadIdx.x % 32;
      if (lane >= 2 * kGroups) return;
      const int half = lane % 2;
      copy_scales(stage + kKeys * kRowBytes + (lane / 2 * kKeys + row) * kScaleBytes + half * 16,
                  scales + lane / 2 * scale_step + half * 16, first - 8 * half, last - 8 * half);
    }
  }

  __device__ __forceinline__ static void multiply(float (&c)[4], const std::uint32_t (&a)[4],
                                                  std::uint32_t b0, std::uint32_t b1) {
    if constexpr (is_bf16_factor(kElement)) {
      mma_bf16(c, a, b0, b1);
    } else {
      mma_fp16(c, a, b0, b1);
    }
  }

  // Computes the scores of a stage of keys, [key / 8][fragment].
  __device__ __forceinline__ static void score(std::uint32_t stage,
                                               const std::uint32_t (&query)[kDim / 16][4],
                                               float (*scores)[4]) {
    const int lane = threadIdx.x % 32;
    const int row = lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
      for (float& score : scores[j]) score = 0;
    }
    __half2 scale[kKeys / 8] = {};  // of int8: of the lane's key among eight
    if constexpr (kElement == Element::kInt8) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) scale[j] = key_scale(stage, 8 * j, 0);
    }
#pragma unroll
    for (int k = 0; k < kRowBytes / 32; ++k) {
#pragma unroll
      for (int p = 0; p < kKeys / 16; ++p) {
        std::uint32_t b[4];  // by 8 keys, by chunk
        ldmatrix_x4(b, stage + place(16 * p + row, 2 * k + lane / 8 % 2));
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if constexpr (kCodes) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
              const __half2 by = kElement == Element::kInt4
                                     ? key_scale(stage, 16 * p + 8 * i, 2 * k + c)
                                     : scale[2 * p + i];
              score_chunk(b[2 * i + c], by, query, 2 * k + c, scores[2 * p + i]);
            }
          } else {
            multiply(scores[2 * p + i], query[k], b[2 * i], b[2 * i + 1]);
          }
        }
      }
    }
    // Scales of E4M3 are powers of two: scaling the sum is scaling the keys.
    if constexpr (kElement == Element::kE4M3) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
        const float2 by = __half22float2(scales_at(stage, 8 * j, 0));
        scores[j][0] *= by.x;
        scores[j][1] *= by.y;
        scores[j][2] *= by.x;
        scores[j][3] *= by.y;
      }
    }
  }

  // Adds the weighted values of a stage, [dimensions / 8][fragment]; weights by 16 keys.
  __device__ __forceinline__ static void add_values(std::uint32_t stage,
                                                    const std::uint32_t (*weights)[4],
                                                    float (&values)[kDim / 8][4]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int p = 0; p < kKeys / 16; ++p) {
      __half2 scale[2] = {};
      if constexpr (kScaled && kGroups == 1) {
        scale[0] = scales_at(stage, 16 * p, 0);
        scale[1] = scales_at(stage, 16 * p + 8, 0);
      }
#pragma unroll
      for (int k = 0; k < kRowBytes / 32; ++k) {
        std::uint32_t b[4];  // by chunk, by 8 keys
        ldmatrix_x4_trans(b, stage + place(16 * p + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if constexpr (kCodes) {
            if constexpr (kScaled && kGroups > 1) {
              scale[0] = scales_at(stage, 16 * p, 2 * k + i);
              scale[1] = scales_at(stage, 16 * p + 8, 2 * k + i);
            }
            add_chunk(b[2 * i], b[2 * i + 1], scale, weights[p], 2 * k + i, values);
          } else {
            multiply(values[2 * k + i], weights[p], b[2 * i], b[2 * i + 1]);
          }
        }
      }
    }
  }

  // The dimension of column i (0 or 1) of this lane in fragment j of values.
  __device__ __forceinline__ static int dimension(int j, int i) {
    const int quad = threadIdx.x % 4;
    return kCodes ? j / 2 * 16 + 4 * quad + 2 * i + j % 2 : 8 * j + 2 * quad + i;
  }
  // The first of the two dimensions of this lane in half h of a step of the query.
  __device__ __forceinline__ static int query_dimension(int step, int h) {
    const int quad = threadIdx.x % 4;
    return 16 * step + (kCodes ? 4 * quad + 2 * h : 2 * quad + 8 * h);
  }

 private:
  template <bool kAll>
  __device__ __forceinline__ static void copy_codes(std::uint32_t stage, int row,
                                                    const std::byte* from, int first, int last) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int at = 0; at < 16 * kRowBytes; at += 512) {
      const int own = (at + lane * 16) / kRowBytes;
      const int chunk = (at + lane * 16) % kRowBytes / 16;
      cp_async_16(stage + place(row + own, chunk), from + at + lane * 16,
                  kAll || (own >= first && own <= last) ? 16 : 0);
    }
  }
  // Copies eight scales. Those outside of [first, last] become 0: one that nobody wrote may be NaN,
  // and 0 * NaN is NaN. An asynchronous copy writes zeros behind what is there, but not before it.
  __device__ __forceinline__ static void copy_scales(std::uint32_t to, const std::byte* from,
                                                     int first, int last) {
    static_assert(!kScaled || kScaleBytes == 2);
    const int there = first > 7 ? 0 : min(max(last + 1, 0), 8);
    if (first <= 0 || there == 0) return cp_async_16(to, from, there * kScaleBytes);
    const uint4 all = *reinterpret_cast<const uint4*>(from);
    std::uint32_t words[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (2 * i < first || 2 * i >= there) words[i] &= 0xFFFF0000u;
      if (2 * i + 1 < first || 2 * i + 1 >= there) words[i] &= 0x0000FFFFu;
    }
    st_shared_v4(to, make_uint4(words[0], words[1], words[2], words[3]));
  }
  // Adds the products of four bytes of a key, of chunk `chunk` of its row, to its scores.
  __device__ __forceinline__ static void score_chunk(std::uint32_t codes, __half2 scale,
                                                     const std::uint32_t (&query)[kDim / 16][4],
                                                     int chunk, float (&scores)[4]) {
    std::uint32_t pairs[kCodePairs<kElement>];
    widen<kElement>(codes, pairs);
#pragma unroll
    for (int h = 0; h < kCodePairs<kElement> / 2; ++h) {
      if constexpr (kv::memory::is_integer(kElement)) {
        pairs[2 * h] = scaled(pairs[2 * h], scale);
        pairs[2 * h + 1] = scaled(pairs[2 * h + 1], scale);
      }
      multiply(scores, query[chunk * kCodePairs<kElement> / 2 + h], pairs[2 * h], pairs[2 * h + 1]);
    }
  }
  // Adds weighted values of 16 keys: a register holds two keys by two bytes of chunk `chunk`, of
  // which the even one's come first.
  __device__ __forceinline__ static void add_chunk(std::uint32_t low, std::uint32_t high,
                                                   const __half2 (&scale)[2],
                                                   const std::uint32_t (&weights)[4], int chunk,
                                                   float (&values)[kDim / 8][4]) {
    std::uint32_t pairs[2][kCodePairs<kElement>];
    widen<kElement>(__byte_perm(low, 0, 0x3120), pairs[0]);
    widen<kElement>(__byte_perm(high, 0, 0x3120), pairs[1]);
#pragma unroll
    for (int f = 0; f < kCodePairs<kElement>; ++f) {
      if constexpr (kScaled) {
        pairs[0][f] = scaled(pairs[0][f], scale[0]);
        pairs[1][f] = scaled(pairs[1][f], scale[1]);
      }
      multiply(values[chunk * kCodePairs<kElement> + f], weights, pairs[0][f], pairs[1][f]);
    }
  }
  __device__ __forceinline__ static std::uint32_t scale_address(std::uint32_t stage, int key,
                                                                int group) {
    return stage + kKeys * kRowBytes + (group * kKeys + key) * kScaleBytes;
  }
  // The scales of this lane's two keys among eight.
  __device__ __forceinline__ static __half2 scales_at(std::uint32_t stage, int key, int group) {
    const std::uint32_t bits =
        ld_shared_b32(scale_address(stage, key + 2 * (static_cast<int>(threadIdx.x) % 4), group));
    return *reinterpret_cast<const __half2*>(&bits);
  }
  // The scale of this lane's key among eight, twice.
  __device__ __forceinline__ static __half2 key_scale(std::uint32_t stage, int key, int group) {
    const int own = key + static_cast<int>(threadIdx.x) % 32 / 4;
    return __half2half2(__ushort_as_half(ld_shared_b16(scale_address(stage, own, group))));
  }
};

// The rows of a cache's keys and values, in stages of as many keys: some 8 KB of the longer rows
// with their scales, and a part of a tile.
template <Element kKeyElement, Element kValueElement, int kHeadDim>
struct CachePair {
  static constexpr int kDim = kHeadDim;
  static constexpr Element kKeyEach = kKeyElement;
  static constexpr Element kValueEach = kValueElement;
  static constexpr int kKeys = [] {
    const auto bytes = [](Element element) {
      return kv::memory::row_bytes(element, kDim) +
             kv::memory::scale_groups(element, kDim) * kv::memory::scale_bytes(element);
    };
    int keys = 64;
    while (keys * bytes(kKeyElement) > 8448 || keys * bytes(kValueElement) > 8448) keys /= 2;
    return keys;
  }();
  using Keys = CacheRows<kKeyElement, kDim, kKeys>;
  using Values = CacheRows<kValueElement, kDim, kKeys>;
  static constexpr int kStageBytes =
      Keys::kStageBytes > Values::kStageBytes ? Keys::kStageBytes : Values::kStageBytes;
};

}  // namespace pagoda::kernels::cuda

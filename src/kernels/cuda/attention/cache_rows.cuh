// Rows of keys and values on their way from pages to tensor cores: copied to shared memory as they
// are, a stage of some rows at a time, and turned into factors in registers.
//
// In shared memory the 16-byte chunks of a row are exchanged so that eight rows' chunks of the same
// dimensions lie in different banks. Eight-bit codes become fp16 (ops.h), four bytes of a lane two
// registers; a step's dimensions and keys are dealt to lanes in the order in which they come.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

using kv::memory::Element;

template <Element kElement, int kDim>
struct CacheRows {
  static constexpr bool kCodes = kElement == Element::kE4M3;
  static constexpr int kRowBytes = kDim * static_cast<int>(kv::memory::unit_bytes(kElement));
  static constexpr int kScaleBytes = static_cast<int>(kv::memory::scale_bytes(kElement));
  // Keys of a stage: some 8 KB, and a part of a tile.
  static constexpr int kKeys = 8192 / kRowBytes < 64 ? 8192 / kRowBytes : 64;
  static constexpr int kStageBytes = kKeys * (kRowBytes + kScaleBytes);

  // The offset of a chunk of 16 bytes within a stage.
  __device__ static constexpr int place(int row, int chunk) {
    const int other = kRowBytes >= 128 ? row % 8 : row / 2 % 4;
    return row * kRowBytes + (chunk ^ other) * 16;
  }

  // Copies 16 rows from `from` on, and their scales, to row `row` of a stage. Rows outside of
  // [first, last], counted from 0 to 15, become 0.
  __device__ __forceinline__ static void copy(std::uint32_t stage, int row, const std::byte* from,
                                              const std::byte* scales, int first, int last) {
    if (first <= 0 && last >= 15) {
      copy_codes<true>(stage, row, from, first, last);
    } else {
      copy_codes<false>(stage, row, from, first, last);
    }
    if constexpr (kCodes) {
      const int lane = threadIdx.x % 32;
      if (lane >= 2) return;
      // Scales of such rows become 0 too: one that nobody wrote may be NaN, and 0 * NaN is NaN.
      const int there = first > 8 * lane + 7 ? 0 : min(max(last + 1 - 8 * lane, 0), 8);
      cp_async_16(stage + kKeys * kRowBytes + row * kScaleBytes + lane * 16, scales + lane * 16,
                  there * kScaleBytes);
    }
  }

  // Converts four e4m3 codes to two pairs of fp16.
  __device__ __forceinline__ static void widen(std::uint32_t codes, std::uint32_t& low,
                                               std::uint32_t& high) {
    low = fp16_from_e4m3(static_cast<std::uint16_t>(codes));
    high = fp16_from_e4m3(static_cast<std::uint16_t>(codes >> 16));
  }

  __device__ __forceinline__ static void multiply(float (&c)[4], const std::uint32_t (&a)[4],
                                                  std::uint32_t b0, std::uint32_t b1) {
    if constexpr (kElement == Element::kBF16) {
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
            for (int step = 0; step < 2; ++step) {
              std::uint32_t low, high;
              widen(b[2 * i + step], low, high);
              multiply(scores[2 * p + i], query[2 * k + step], low, high);
            }
          } else {
            multiply(scores[2 * p + i], query[k], b[2 * i], b[2 * i + 1]);
          }
        }
      }
    }
    if constexpr (kCodes) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
        const float2 scale = __half22float2(scales_at(stage, 8 * j));
        scores[j][0] *= scale.x;
        scores[j][1] *= scale.y;
        scores[j][2] *= scale.x;
        scores[j][3] *= scale.y;
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
      __half2 scale[2];
      if constexpr (kCodes) {
        scale[0] = scales_at(stage, 16 * p);
        scale[1] = scales_at(stage, 16 * p + 8);
      }
#pragma unroll
      for (int k = 0; k < kRowBytes / 32; ++k) {
        std::uint32_t b[4];  // by chunk, by 8 keys
        ldmatrix_x4_trans(b, stage + place(16 * p + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if constexpr (kCodes) {
            // A register holds two keys by two dimensions: the even dimension's come first.
            std::uint32_t even[2], odd[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              widen(__byte_perm(b[2 * i + h], 0, 0x3120), even[h], odd[h]);
              even[h] = times(even[h], scale[h]);
              odd[h] = times(odd[h], scale[h]);
            }
            multiply(values[4 * k + 2 * i], weights[p], even[0], even[1]);
            multiply(values[4 * k + 2 * i + 1], weights[p], odd[0], odd[1]);
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
  // The scales of this lane's two keys among eight.
  __device__ __forceinline__ static __half2 scales_at(std::uint32_t stage, int key) {
    const std::uint32_t bits = ld_shared_b32(stage + kKeys * kRowBytes +
                                             (key + 2 * (static_cast<int>(threadIdx.x) % 4)) * 2);
    return *reinterpret_cast<const __half2*>(&bits);
  }
  __device__ __forceinline__ static std::uint32_t times(std::uint32_t pair, __half2 scale) {
    const __half2 product = __hmul2(*reinterpret_cast<const __half2*>(&pair), scale);
    return *reinterpret_cast<const std::uint32_t*>(&product);
  }
};

}  // namespace pagoda::kernels::cuda

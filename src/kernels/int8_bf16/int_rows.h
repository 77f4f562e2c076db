// Left-hand sides of products with integers of the cache: queries, and weights of values.
//
//   a query            [64 dimensions] Int8Limbs, or words where bytes cannot be multiplied (AVX2)
//   weights of values  [16 keys] 16 high bytes and 16 low ones, not signed, or words
#pragma once

#include "kernels/activations.h"
#include "kernels/int8_bf16/simd.h"
#include "kernels/ops.h"

namespace pagoda::kernels::PAGODA_ISA {

#if defined(__AVX2__) && !defined(__AVX512VNNI__)
inline constexpr bool kIntsAreWords = true;
#else
inline constexpr bool kIntsAreWords = false;
#endif

// Compares magnitudes as integers: they have the same order, and NaN is above all.
inline float largest_magnitude(const float* x, std::size_t count) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x[i]) & 0x7FFFFFFF;
    most = bits > most ? bits : most;
  }
  return __builtin_bit_cast(float, most);
}

// 64 words as they are multiplied.
inline void put_query_block(const std::int16_t* n, std::byte* to) {
  if constexpr (kIntsAreWords) {
    __builtin_memcpy(to, n, sizeof(Int8Limbs));
  } else {
    Int8Limbs limbs;
    for (std::size_t i = 0; i < kBlockK; ++i) {
      const int high = (n[i] + kLimbBase / 2) >> kLimbBits;
      limbs.high[i] = static_cast<std::int8_t>(high);
      limbs.low[i] = static_cast<std::int8_t>(n[i] - kLimbBase * high);
    }
    __builtin_memcpy(to, &limbs, sizeof(limbs));
  }
}

// Where a dimension stands in a query: its high limb, or its word. A multiple of four.
constexpr std::size_t query_offset(std::size_t dimension) {
  return dimension / kBlockK * sizeof(Int8Limbs) + dimension % kBlockK * (kIntsAreWords ? 2 : 1);
}

// A query into [k_blocks_of(dimensions)] blocks, the last filled up with zeros. Returns what an
// integer stands for: KernelSet::pack_activations has the rule.
inline float put_query(const float* q, std::size_t dimensions, std::byte* blocks) {
  constexpr float kSmallest = 0x1p-100f;
  const float largest = largest_magnitude(q, dimensions);
  const bool usable = largest >= kSmallest && largest < __builtin_inff();
  const F32x16 inverse = broadcast(usable ? static_cast<float>(kLimbsMax) / largest : 0.0f);
  for (std::size_t first = 0; first < dimensions; first += kBlockK) {
    alignas(64) float filled[kBlockK] = {};
    alignas(64) std::int16_t n[kBlockK];
    const std::size_t count = dimensions - first < kBlockK ? dimensions - first : kBlockK;
    if (usable) __builtin_memcpy(filled, q + first, count * sizeof(float));
    for (std::size_t i = 0; i < kBlockK; i += kLanes) {
      store_nearest(n + i, load(filled + i) * inverse);
    }
    put_query_block(n, blocks + first / kBlockK * sizeof(Int8Limbs));
  }
  if (usable) return largest / static_cast<float>(kLimbsMax);
  return largest < kSmallest ? 0.0f : __builtin_nanf("");
}

inline constexpr std::size_t kWeightTileBytes = 32;  // of 16 keys

// Weights of 16 keys, integers up to kValueWeightMax.
inline void put_weights(const F32x16& integers, std::byte* to) {
  alignas(32) std::int16_t n[kLanes];
  store_nearest(n, integers);
  if constexpr (kIntsAreWords) {
    __builtin_memcpy(to, n, sizeof(n));
  } else {
    alignas(32) std::uint8_t bytes[kWeightTileBytes];
    for (std::size_t i = 0; i < kLanes; ++i) {
      bytes[i] = static_cast<std::uint8_t>(n[i] >> 8);
      bytes[kLanes + i] = static_cast<std::uint8_t>(n[i] & 255);
    }
    __builtin_memcpy(to, bytes, sizeof(bytes));
  }
}

}  // namespace pagoda::kernels::PAGODA_ISA

// 16 x 16 words of four bytes, rows to columns: pairs of bf16, or floats.
#pragma once

#include "kernels/int8_bf16/simd.h"

namespace pagoda::kernels::PAGODA_ISA {

#if defined(__AVX512F__)

// to[j][i] = from[i][j]; strides in bytes
inline void transpose_words(const void* from, std::size_t from_stride, void* to,
                            std::size_t to_stride) {
  const auto* const source = static_cast<const std::byte*>(from);
  auto* const target = static_cast<std::byte*>(to);
  __m512i a[16];
  __m512i b[16];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) a[i] = _mm512_loadu_si512(source + i * from_stride);
    // Words, then pairs of words, change places within lanes of 128 bits.
#pragma GCC unroll 8
  for (std::size_t i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 16; i += 4) {
    a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
  // a[4g + j], lane l: column 4l + j of rows 4g to 4g + 3. Now the lanes.
#pragma GCC unroll 4
  for (std::size_t j = 0; j < 4; ++j) {
    const __m512i low01 = _mm512_shuffle_i32x4(a[j], a[4 + j], 0x88);
    const __m512i low23 = _mm512_shuffle_i32x4(a[8 + j], a[12 + j], 0x88);
    const __m512i high01 = _mm512_shuffle_i32x4(a[j], a[4 + j], 0xDD);
    const __m512i high23 = _mm512_shuffle_i32x4(a[8 + j], a[12 + j], 0xDD);
    _mm512_storeu_si512(target + j * to_stride, _mm512_shuffle_i32x4(low01, low23, 0x88));
    _mm512_storeu_si512(target + (8 + j) * to_stride, _mm512_shuffle_i32x4(low01, low23, 0xDD));
    _mm512_storeu_si512(target + (4 + j) * to_stride, _mm512_shuffle_i32x4(high01, high23, 0x88));
    _mm512_storeu_si512(target + (12 + j) * to_stride, _mm512_shuffle_i32x4(high01, high23, 0xDD));
  }
}

#elif defined(__ARM_FEATURE_MATMUL_INT8)

inline void transpose_words(const void* from, std::size_t from_stride, void* to,
                            std::size_t to_stride) {
  const auto pairs = [](uint32x4_t x) { return vreinterpretq_u64_u32(x); };
  for (std::size_t i = 0; i < 16; i += 4) {
    for (std::size_t j = 0; j < 16; j += 4) {
      const auto source = [&](std::size_t row) {
        return vld1q_u32(reinterpret_cast<const std::uint32_t*>(
            static_cast<const std::byte*>(from) + (i + row) * from_stride + 4 * j));
      };
      const auto put = [&](std::size_t row, uint64x2_t words) {
        vst1q_u64(reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(to) +
                                                   (j + row) * to_stride + 4 * i),
                  words);
      };
      const uint32x4_t a = source(0);
      const uint32x4_t b = source(1);
      const uint32x4_t c = source(2);
      const uint32x4_t d = source(3);
      const uint64x2_t ab[2] = {pairs(vtrn1q_u32(a, b)), pairs(vtrn2q_u32(a, b))};
      const uint64x2_t cd[2] = {pairs(vtrn1q_u32(c, d)), pairs(vtrn2q_u32(c, d))};
      put(0, vtrn1q_u64(ab[0], cd[0]));
      put(1, vtrn1q_u64(ab[1], cd[1]));
      put(2, vtrn2q_u64(ab[0], cd[0]));
      put(3, vtrn2q_u64(ab[1], cd[1]));
    }
  }
}

#elif defined(__AVX2__)

// A quarter: 8 x 8 words.
inline void transpose_quarter(const std::byte* source, std::size_t from_stride, std::byte* target,
                              std::size_t to_stride) {
  __m256i a[8];
  __m256i b[8];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < 8; ++i) {
    a[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i * from_stride));
  }
  // Words, then pairs of words, change places within lanes of 128 bits.
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_epi32(a[i], a[i + 1]);
  }
#pragma GCC unroll 2
  for (std::size_t i = 0; i < 8; i += 4) {
    a[i] = _mm256_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm256_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm256_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
  // a[4g + j], lane l: column 4l + j of rows 4g to 4g + 3. Now the lanes.
#pragma GCC unroll 4
  for (std::size_t j = 0; j < 4; ++j) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + j * to_stride),
                        _mm256_permute2x128_si256(a[j], a[4 + j], 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + (4 + j) * to_stride),
                        _mm256_permute2x128_si256(a[j], a[4 + j], 0x31));
  }
}

inline void transpose_words(const void* from, std::size_t from_stride, void* to,
                            std::size_t to_stride) {
  const auto* const source = static_cast<const std::byte*>(from);
  auto* const target = static_cast<std::byte*>(to);
  for (const std::size_t i : {0, 8}) {
    for (const std::size_t j : {0, 8}) {
      transpose_quarter(source + i * from_stride + 4 * j, from_stride,
                        target + j * to_stride + 4 * i, to_stride);
    }
  }
}

#else

inline void transpose_words(const void* from, std::size_t from_stride, void* to,
                            std::size_t to_stride) {
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      std::memcpy(static_cast<std::byte*>(to) + j * to_stride + 4 * i,
                  static_cast<const std::byte*>(from) + i * from_stride + 4 * j, 4);
    }
  }
}

#endif

}  // namespace pagoda::kernels::PAGODA_ISA

// kernels/int8_bf16/int_products.h by AVX-512 with VNNI, or by AVX2.
#pragma once

#include "kernels/int8_bf16/int_rows.h"
#include "kernels/int8_bf16/page_tiles.h"

namespace pagoda::kernels::PAGODA_ISA {

[[gnu::always_inline]] inline std::int32_t four_bytes(const void* p) {
  std::int32_t four;
  __builtin_memcpy(&four, p, sizeof(four));
  return four;
}

#if defined(__AVX512VNNI__)

// 16 columns of fours.
struct IntLine {
  __m512i v;
};
[[gnu::always_inline]] inline IntLine load_int_line(const std::byte* p) {
  return {_mm512_loadu_si512(p)};
}

// Sums of 16 columns times a row of limbs.
struct LimbSums {
  __m512i high = _mm512_setzero_si512();
  __m512i low = _mm512_setzero_si512();

  [[gnu::always_inline]] F32x16 floats() const {
    return {_mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(static_cast<float>(kLimbBase)),
                            _mm512_cvtepi32_ps(low))};
  }
};

// The instruction takes one side unsigned: codes are raised by 128 and sums of limbs taken off
// again.
struct KeySums : LimbSums {
  [[gnu::always_inline]] void add(IntLine line, const std::byte* limbs) {
    const __m512i raised = _mm512_xor_si512(line.v, _mm512_set1_epi8(-128));
    high = _mm512_dpbusd_epi32(high, raised, _mm512_set1_epi32(four_bytes(limbs)));
    low = _mm512_dpbusd_epi32(low, raised, _mm512_set1_epi32(four_bytes(limbs + kBlockK)));
  }
  // Limbs of 64 dimensions, or of half a block.
  [[gnu::always_inline]] static __m512i load_limbs(const std::byte* limbs, std::size_t dimensions) {
    if (dimensions >= kBlockK) return _mm512_loadu_si512(limbs);
    return _mm512_zextsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(limbs)));
  }
  [[gnu::always_inline]] void take_off(const std::byte* query, std::size_t dimensions) {
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i highs = _mm512_setzero_si512();
    __m512i lows = _mm512_setzero_si512();
    for (std::size_t first = 0; first < dimensions; first += kBlockK, query += sizeof(Int8Limbs)) {
      highs = _mm512_dpbusd_epi32(highs, ones, load_limbs(query, dimensions - first));
      lows = _mm512_dpbusd_epi32(lows, ones, load_limbs(query + kBlockK, dimensions - first));
    }
    high = _mm512_sub_epi32(high, _mm512_set1_epi32(128 * _mm512_reduce_add_epi32(highs)));
    low = _mm512_sub_epi32(low, _mm512_set1_epi32(128 * _mm512_reduce_add_epi32(lows)));
  }
};
struct ValueSums : LimbSums {
  [[gnu::always_inline]] void add(IntLine line, const std::byte* limbs) {
    high = _mm512_dpbusd_epi32(high, _mm512_set1_epi32(four_bytes(limbs)), line.v);
    low = _mm512_dpbusd_epi32(low, _mm512_set1_epi32(four_bytes(limbs + 16)), line.v);
  }
};
inline constexpr std::size_t kFourBytes = 4;  // of a left-hand row
inline constexpr int kIntRows = 4;

#else

// 16 columns of fours as words, four columns a register.
struct IntLine {
  __m256i v[4];
};
[[gnu::always_inline]] inline IntLine load_int_line(const std::byte* p) {
  const auto words = [&](int i) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i));
  };
  return {{words(0), words(1), words(2), words(3)}};
}

// Two sums for each column.
struct WordSums {
  __m256i v[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                  _mm256_setzero_si256()};

  [[gnu::always_inline]] void add(const IntLine& line, const std::byte* words) {
    long long four;
    __builtin_memcpy(&four, words, sizeof(four));
    const __m256i left = _mm256_set1_epi64x(four);
    PAGODA_ISA_UNROLL for (int i = 0; i < 4; ++i) {
      v[i] = _mm256_add_epi32(v[i], _mm256_madd_epi16(line.v[i], left));
    }
  }
  void take_off(const std::byte*, std::size_t) {}
  // The two are added as high and low parts, which are numbers of floats: together they may be
  // beyond 32 bits.
  [[gnu::always_inline]] F32x16 floats() const {
    const auto eight = [](__m256i a, __m256i b) {
      const __m256i bytes = _mm256_set1_epi32(255);
      const auto in_order = [](__m256i x) { return _mm256_permute4x64_epi64(x, 0xD8); };
      const __m256i high =
          in_order(_mm256_hadd_epi32(_mm256_srai_epi32(a, 8), _mm256_srai_epi32(b, 8)));
      const __m256i low =
          in_order(_mm256_hadd_epi32(_mm256_and_si256(a, bytes), _mm256_and_si256(b, bytes)));
      return _mm256_fmadd_ps(_mm256_cvtepi32_ps(high), _mm256_set1_ps(256.0f),
                             _mm256_cvtepi32_ps(low));
    };
    return {eight(v[0], v[1]), eight(v[2], v[3])};
  }
};
using KeySums = WordSums;
using ValueSums = WordSums;
inline constexpr std::size_t kFourBytes = 8;  // of a left-hand row
inline constexpr int kIntRows = 2;

#endif

template <int Rows>
[[gnu::always_inline]] inline void score_rows(LeftInts queries, std::size_t dimensions, KvTile keys,
                                              KeyScales scales, OutFloats out) {
  KeySums sums[Rows];
  const std::byte* line = keys.data;
  for (std::size_t first = 0; first < dimensions; first += 4, line += keys.stride) {
    const IntLine columns = load_int_line(line);
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      sums[r].add(columns, queries.row(r) + query_offset(first));
    }
  }
  const F32x16 by = load(scales.scales);
  PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
    sums[r].take_off(queries.row(r), dimensions);
    float* const place = out.data + r * out.stride;
    const F32x16 sum = sums[r].floats();
    store(place, scales.first ? sum * by : fma(sum, by, load(place)));
  }
}

template <int Rows>
[[gnu::always_inline]] inline void weigh_rows(LeftInts weights, const KvTile* values,
                                              std::size_t tiles, std::size_t column,
                                              OutFloats out) {
  ValueSums sums[Rows];
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    PAGODA_ISA_UNROLL for (std::size_t four = 0; four < 4; ++four) {
      const IntLine columns =
          load_int_line(values[tile].data + four * values[tile].stride + 4 * column);
      PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
        sums[r].add(columns, weights.row(r) + tile * kWeightTileBytes + four * kFourBytes);
      }
    }
  }
  PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r)
      store(out.data + r * out.stride, sums[r].floats());
}

}  // namespace pagoda::kernels::PAGODA_ISA

// A packed tile as 16 rows of 32 bf16 weights: the left-hand side of a product.
#pragma once

#include "kernels/tiles/packed_weight.h"
#include "kernels/tiles/simd.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

using tiles::Codes;
using tiles::kTileColumns;
using tiles::kTileRows;
using tiles::PackedFormat;
using tiles::PackedTile;
using tiles::PackedWeight;

// Scales or minima of one tile as floats, [2][16]: columns 0-15 and 16-31. They go through memory,
// from where a load spreads one over a register: shuffles are what unpacking has too few of.
struct TileScales {
  alignas(64) float values[2][kTileRows];

  void keep_in_memory() { asm volatile("" : "+m"(values)); }
};

template <bool HalfScales, bool ScaleEach16>
[[gnu::always_inline]] inline void read_scales(const std::byte* from, TileScales& scales) {
  for (std::size_t i = 0; i < (ScaleEach16 ? 2 : 1); ++i) {
    if constexpr (HalfScales) {
      store(scales.values[i], load_fp16(reinterpret_cast<const std::uint16_t*>(from) + 16 * i));
    } else {
      store(scales.values[i], load(reinterpret_cast<const float*>(from) + 16 * i));
    }
  }
  scales.keep_in_memory();
}

// The sixteen values a nibble can stand for in one row.
template <bool Minima>
[[gnu::always_inline]] inline F32x16 values_of(const F32x16& codes, const TileScales& scales,
                                               const TileScales& minima, std::size_t row) {
  const F32x16 scale = broadcast(scales.values[0][row]);
  if constexpr (Minima) return fma(codes, scale, broadcast(minima.values[0][row]));
  return codes * scale;
}

#if defined(__AVX512F__)

// Two rows' sixteen values make one table of 32 halves, which a word's low five bits look up.
template <bool Minima, int Shift>
[[gnu::always_inline]] inline void unpack_nibble_rows(__m512i words, const F32x16& codes,
                                                      const TileScales& scales,
                                                      const TileScales& minima, std::size_t row,
                                                      std::uint16_t* out) {
  const __m512i table = to_bf16(values_of<Minima>(codes, scales, minima, row),
                                values_of<Minima>(codes, scales, minima, row + 1));
  const __m512i nibble = _mm512_set1_epi16(15);
  const __m512i first = _mm512_and_si512(_mm512_srli_epi16(words, Shift), nibble);
  const __m512i second = _mm512_ternarylogic_epi32(_mm512_srli_epi16(words, Shift + 4), nibble,
                                                   _mm512_set1_epi16(16), 0xEA);  // (a & b) | c
  _mm512_store_si512(out + row * kTileColumns, _mm512_permutexvar_epi16(first, table));
  _mm512_store_si512(out + (row + 1) * kTileColumns, _mm512_permutexvar_epi16(second, table));
}

template <bool Minima>
[[gnu::always_inline]] inline void unpack_nibbles(const std::byte* from, const F32x16& codes,
                                                  const TileScales& scales,
                                                  const TileScales& minima, std::uint16_t* out) {
#pragma GCC unroll 4
  for (std::size_t quad = 0; quad < 4; ++quad) {
    const __m512i words = _mm512_load_si512(from + 64 * quad);
    unpack_nibble_rows<Minima, 0>(words, codes, scales, minima, 4 * quad, out);
    unpack_nibble_rows<Minima, 8>(words, codes, scales, minima, 4 * quad + 2, out);
  }
}

inline F32x16 load_int8(const std::byte* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}

#else

template <bool Minima>
inline void unpack_nibbles(const std::byte* from, const F32x16& codes, const TileScales& scales,
                           const TileScales& minima, std::uint16_t* out) {
  for (std::size_t row = 0; row < kTileRows; ++row) {
    std::uint16_t table[kLanes];
    store_bf16(table, values_of<Minima>(codes, scales, minima, row));
    for (std::size_t c = 0; c < kTileColumns; ++c) {
      std::uint16_t word = 0;
      std::memcpy(&word, from + 64 * (row / 4) + 2 * c, 2);
      out[row * kTileColumns + c] = table[word >> (4 * (row % 4)) & 15];
    }
  }
}

inline F32x16 load_int8(const std::byte* p) {
  return each_lane(
      [&](std::size_t i) { return static_cast<float>(static_cast<std::int8_t>(p[i])); });
}

#endif

template <bool Minima, bool ScaleEach16>
[[gnu::always_inline]] inline void unpack_bytes(const std::byte* from, const TileScales& scales,
                                                const TileScales& minima, std::uint16_t* out) {
  for (std::size_t row = 0; row < kTileRows; ++row) {
    F32x16 halves[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t group = ScaleEach16 ? i : 0;
      const F32x16 codes = load_int8(from + row * kTileColumns + 16 * i);
      const F32x16 scale = broadcast(scales.values[group][row]);
      if constexpr (Minima) {
        halves[i] = fma(codes, scale, broadcast(minima.values[group][row]));
      } else {
        halves[i] = codes * scale;
      }
    }
    store_bf16(out + row * kTileColumns, halves[0], halves[1]);
  }
}

// A format whose fields are known when it is compiled.
template <Codes kCodes, bool kHalfScales, bool kMinima, bool kScaleEach16 = false>
struct FixedFormat {
  // out: [16][32] bf16, aligned to 64 bytes
  [[gnu::always_inline]] static void unpack(const PackedFormat& format, PackedTile tile,
                                            std::uint16_t* out) {
    TileScales scales;
    TileScales minima;
    read_scales<kHalfScales, kScaleEach16>(tile.scales, scales);
    if constexpr (kMinima) {
      read_scales<kHalfScales, kScaleEach16>(tile.scales + format.scale_bytes(), minima);
    }
    if constexpr (kCodes == Codes::kNibbles) {
      alignas(64) static constexpr float kIota[kLanes] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                          8, 9, 10, 11, 12, 13, 14, 15};
      const F32x16 codes = load(kIota) + broadcast(format.lowest);
      unpack_nibbles<kMinima>(tile.codes, codes, scales, minima, out);
    } else {
      unpack_bytes<kMinima, kScaleEach16>(tile.codes, scales, minima, out);
    }
  }
};

// Calls use(FixedFormat) for the format's own; bf16 needs no unpacking and has none.
template <class Use>
[[gnu::always_inline]] inline void with_fixed_format(const PackedFormat& format, Use use) {
  if (format.codes == Codes::kNibbles) {
    if (format.half_scales) {
      return format.minima ? use(FixedFormat<Codes::kNibbles, true, true>())
                           : use(FixedFormat<Codes::kNibbles, true, false>());
    }
    return use(FixedFormat<Codes::kNibbles, false, true>());
  }
  if (format.half_scales) {
    return format.minima ? use(FixedFormat<Codes::kBytes, true, true>())
                         : use(FixedFormat<Codes::kBytes, true, false>());
  }
  if (format.scale_each_16) return use(FixedFormat<Codes::kBytes, false, false, true>());
  return format.minima ? use(FixedFormat<Codes::kBytes, false, true>())
                       : use(FixedFormat<Codes::kBytes, false, false>());
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET

// Tiles of 16 keys or values out of pages: converted to bf16, or codes of integers as signed bytes.
#pragma once

#include "kernels/activations.h"
#include "kernels/int8_bf16/simd.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels::PAGODA_ISA {

inline constexpr std::size_t kKeyTile = 16;
inline constexpr std::size_t kLine = 64;

constexpr std::size_t round_up(std::size_t count, std::size_t unit) {
  return (count + unit - 1) / unit * unit;
}

// A right-hand side: rows of 64 bytes, `stride` apart.
struct KvTile {
  const std::byte* data;
  std::size_t stride;
};

inline float row_scale(kv::memory::Row row, std::size_t group) {
  std::uint16_t scale = 0;
  __builtin_memcpy(&scale, row.scale + group * row.scale_step, sizeof(scale));
  alignas(64) std::uint16_t halves[kLanes] = {scale};
  alignas(64) float value[kLanes];
  store(value, load_fp16(halves));
  return value[0];
}

// ---- floats

// Eight-bit floats as fp16. E4M3's exponents begin elsewhere: its numbers are 2^-8 of what they
// are.
inline constexpr float kE4M3Factor = 256.0f;
inline F32x16 load_fp8(kv::memory::Element element, const std::byte* from) {
  alignas(32) std::uint16_t halves[kLanes];
  if (element == kv::memory::Element::kE5M2) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      halves[i] = static_cast<std::uint16_t>(std::to_integer<unsigned>(from[i]) << 8);
    }
  } else {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const auto code = std::to_integer<unsigned>(from[i]);
      const unsigned bits = (code & 0x7F) == 0x7F ? 0x7E00u : (code & 0x7F) << 7;
      halves[i] = static_cast<std::uint16_t>((code & 0x80) << 8 | bits);
    }
  }
  return load_fp16(halves);
}

// 16 elements that stand together, before their scale.
inline F32x16 load_floats(kv::memory::Element element, const std::byte* from) {
  switch (element) {
    case kv::memory::Element::kF32:
      return load(reinterpret_cast<const float*>(from));
    case kv::memory::Element::kF16:
      return load_fp16(reinterpret_cast<const std::uint16_t*>(from));
    default:
      return load_fp8(element, from);
  }
}

// Scales of 16 keys, each twice, for a line of pairs: lines[0] of keys 0 to 7, lines[1] of the
// rest.
struct PairScales {
  F32x16 lines[2];
};
inline PairScales pair_scales(const std::byte* scales) {
  alignas(64) float of_keys[kKeyTile];
  alignas(64) float twice[2 * kKeyTile];
  store(of_keys, load_fp16(reinterpret_cast<const std::uint16_t*>(scales)));
  for (std::size_t i = 0; i < 2 * kKeyTile; ++i) twice[i] = of_keys[i / 2] * kE4M3Factor;
  return {{load(twice), load(twice + kLanes)}};
}

// Columns [dimension pair][16 keys][2] as bf16.
inline void convert_keys(kv::memory::Element element, KvTile columns, std::size_t dimensions,
                         const std::byte* scales, std::byte* target) {
  const bool scaled = kv::memory::scale_bytes(element) > 0;
  const PairScales by = scaled ? pair_scales(scales) : PairScales{};
  for (std::size_t pair = 0; pair < dimensions / 2; ++pair) {
    auto* const halves = reinterpret_cast<std::uint16_t*>(target + pair * kLine);
    for (std::size_t half = 0; half < 2; ++half) {
      const std::byte* const from =
          columns.data + pair * columns.stride + half * kLanes * kv::memory::unit_bytes(element);
      const F32x16 x = load_floats(element, from);
      store_bf16(halves + half * kLanes, scaled ? x * by.lines[half] : x);
    }
  }
}

// Values [key pair][dimension][2] as bf16.
inline void convert_values(kv::memory::Element element, const std::byte* from,
                           std::size_t dimensions, const std::byte* scales, std::byte* target) {
  const std::size_t bytes = kv::memory::unit_bytes(element);
  if (element == kv::memory::Element::kBF16) {
    __builtin_memcpy(target, from, kKeyTile * dimensions * bytes);
    return;
  }
  const bool scaled = kv::memory::scale_bytes(element) > 0;
  alignas(64) float of_keys[kKeyTile];
  if (scaled) store(of_keys, load_fp16(reinterpret_cast<const std::uint16_t*>(scales)));
  auto* const halves = reinterpret_cast<std::uint16_t*>(target);
  for (std::size_t pair = 0; pair < kKeyTile / 2; ++pair) {
    alignas(64) float line[kLanes];
    for (std::size_t i = 0; i < kLanes && scaled; ++i) {
      line[i] = of_keys[2 * pair + i % 2] * kE4M3Factor;
    }
    const F32x16 by = scaled ? load(line) : broadcast(1.0f);
    for (std::size_t i = 0; i < 2 * dimensions; i += kLanes) {
      const std::size_t at = pair * 2 * dimensions + i;
      const F32x16 x = load_floats(element, from + at * bytes);
      store_bf16(halves + at, scaled ? x * by : x);
    }
  }
}

// A tile of keys turned into one of values: [dimension pair][key][2] becomes [key
// pair][dimension][2].
inline void turn_keys(KvTile keys, std::size_t dimensions, std::byte* target) {
  for (std::size_t pair = 0; pair < dimensions / 2; ++pair) {
    std::uint32_t words[kKeyTile];  // of one key: two dimensions
    __builtin_memcpy(words, keys.data + pair * keys.stride, sizeof(words));
    for (std::size_t key = 0; key < kKeyTile; key += 2) {
      const std::uint32_t out[2] = {(words[key] & 0xFFFF) | words[key + 1] << 16,
                                    words[key] >> 16 | (words[key + 1] & 0xFFFF0000u)};
      __builtin_memcpy(target + 4 * (key / 2 * dimensions + 2 * pair), out, sizeof(out));
    }
  }
}

// ---- integers

// Levels of a line of kInt4: those of its low halves and those of its high ones, as signed bytes.
[[gnu::always_inline]] inline void unpack_int4_line(const std::byte* from, std::byte* low,
                                                    std::byte* high) {
#if defined(__AVX2__)
  const __m256i levels = _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(kv::memory::kInt4Levels)));
  const __m256i halves = _mm256_set1_epi8(15);
  for (std::size_t i = 0; i < kLine; i += 32) {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256i lows = _mm256_and_si256(both, halves);
    const __m256i highs = _mm256_and_si256(_mm256_srli_epi16(both, 4), halves);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(low + i), _mm256_shuffle_epi8(levels, lows));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(high + i), _mm256_shuffle_epi8(levels, highs));
  }
#elif defined(__ARM_FEATURE_MATMUL_INT8)
  const int8x16_t levels = vld1q_s8(kv::memory::kInt4Levels);
  for (std::size_t i = 0; i < kLine; i += 16) {
    const uint8x16_t both = vld1q_u8(reinterpret_cast<const std::uint8_t*>(from + i));
    const auto put = [&](std::byte* to, uint8x16_t codes) {
      vst1q_s8(reinterpret_cast<std::int8_t*>(to + i), vqtbl1q_s8(levels, codes));
    };
    put(low, vandq_u8(both, vdupq_n_u8(15)));
    put(high, vshrq_n_u8(both, 4));
  }
#else
  for (std::size_t i = 0; i < kLine; ++i) {
    const auto both = std::to_integer<std::uint8_t>(from[i]);
    low[i] = static_cast<std::byte>(kv::memory::kInt4Levels[both & 15]);
    high[i] = static_cast<std::byte>(kv::memory::kInt4Levels[both >> 4]);
  }
#endif
}

// Columns [4 bytes of a row][16 keys][4] as [4 dimensions][16 keys][4], zeros up to 64 dimensions.
inline void copy_int_keys(kv::memory::Element element, KvTile columns, std::size_t dimensions,
                          std::byte* target) {
  const std::size_t lines = kv::memory::unit_count(element, dimensions) / 4;
  for (std::size_t line = 0; line < lines; ++line) {
    const std::byte* const from = columns.data + line * columns.stride;
    if (element == kv::memory::Element::kInt8) {
      __builtin_memcpy(target + line * kLine, from, kLine);
    } else {
      std::byte* const low = target + kv::memory::int4_dimension(4 * line) / 4 * kLine;
      unpack_int4_line(from, low, low + kv::memory::kInt4HalfStep / 4 * kLine);
    }
  }
  const std::size_t filled = dimensions / 4 * kLine;
  __builtin_memset(target + filled, 0, round_up(dimensions, kBlockK) / 4 * kLine - filled);
}

// Values [4 keys][bytes of a row][4] of kInt4 as [4 keys][dimension][4].
inline void unpack_int4_values(const std::byte* from, std::size_t dimensions, std::byte* target) {
  for (std::size_t line = 0; line < kKeyTile * dimensions / 2; line += kLine) {
    unpack_int4_line(from + line, target + 2 * line, target + 2 * line + kLine);
  }
}

// A tile of keys turned into one of values: [4 dimensions][key][4] becomes [4 keys][dimension][4].
inline void turn_int_keys(KvTile keys, std::size_t dimensions, std::byte* target) {
  for (std::size_t four = 0; four < dimensions / 4; ++four) {
    const std::byte* const line = keys.data + four * keys.stride;
    for (std::size_t key = 0; key < kKeyTile; ++key) {
      for (std::size_t i = 0; i < 4; ++i) {
        target[4 * (key / 4 * dimensions + 4 * four + i) + key % 4] = line[4 * key + i];
      }
    }
  }
}

// ---- one row

// The codes of a row of integers as signed bytes.
inline void row_codes(kv::memory::Element element, kv::memory::Row row, std::size_t dimensions,
                      std::int8_t* codes) {
  for (std::size_t unit = 0; unit < kv::memory::unit_count(element, dimensions); ++unit) {
    const auto byte = std::to_integer<std::uint8_t>(row.data[row.offset(unit)]);
    if (element == kv::memory::Element::kInt8) {
      codes[unit] = static_cast<std::int8_t>(byte);
      continue;
    }
    const std::size_t low = kv::memory::int4_dimension(unit);
    codes[low] = kv::memory::kInt4Levels[byte & 15];
    codes[low + kv::memory::kInt4HalfStep] = kv::memory::kInt4Levels[byte >> 4];
  }
}

inline constexpr std::size_t kRowDimensionsMax = 1024;

// Puts a row where `place(dimension)` says that a tile has it: two bytes of a float, one of an
// integer.
template <class Place>
inline void place_row(kv::memory::Element element, kv::memory::Row row, std::size_t dimensions,
                      Place place) {
  if (kv::memory::is_integer(element)) {
    std::int8_t codes[kRowDimensionsMax];
    row_codes(element, row, dimensions, codes);
    for (std::size_t d = 0; d < dimensions; ++d) __builtin_memcpy(place(d), codes + d, 1);
    return;
  }
  alignas(64) float values[kRowDimensionsMax];
  alignas(64) std::uint16_t halves[kRowDimensionsMax];
  kv::memory::decode_row(element, row, dimensions, values);
  for (std::size_t d = dimensions; d % kLanes != 0; ++d) values[d] = 0;
  for (std::size_t d = 0; d < dimensions; d += kLanes) store_bf16(halves + d, load(values + d));
  for (std::size_t d = 0; d < dimensions; ++d) __builtin_memcpy(place(d), halves + d, 2);
}

inline void place_key(kv::memory::Element element, kv::memory::Row row, std::size_t dimensions,
                      std::size_t key, std::byte* target) {
  const std::size_t run = kv::memory::is_integer(element) ? 4 : 2;
  place_row(element, row, dimensions, [&](std::size_t d) {
    return target + d / run * kLine + 4 * key + d % run * (4 / run);
  });
}

inline void place_value(kv::memory::Element element, kv::memory::Row row, std::size_t dimensions,
                        std::size_t columns, std::size_t key, std::byte* target) {
  const std::size_t run = kv::memory::is_integer(element) ? 4 : 2;
  place_row(element, row, dimensions, [&](std::size_t d) {
    return target + 4 * (key / run * columns + d) + key % run * (4 / run);
  });
}

}  // namespace pagoda::kernels::PAGODA_ISA

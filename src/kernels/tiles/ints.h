// Sums of small integers, 16 outputs at a time, on AVX-512 or in plain C++. All are exact.
//
//   Codes64   [16 outputs][4 columns] unsigned bytes: a line of packed codes
//   Words32   [16 outputs][2] signed words
//   I32x16, I64x16   a sum for each output
#pragma once

#include "kernels/ref/grid.h"
#include "kernels/tiles/simd.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

#if defined(__AVX512VNNI__)

struct I32x16 {
  __m512i v;
};
struct I64x16 {
  __m512i even;  // outputs 0, 2, …
  __m512i odd;
};
struct Codes64 {
  __m512i v;
};
struct Words32 {
  __m512i v;
};

inline I32x16 no_sums() { return {_mm512_setzero_si512()}; }
inline I64x16 no_wide_sums() { return {_mm512_setzero_si512(), _mm512_setzero_si512()}; }
inline I32x16 broadcast_sum(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
inline I32x16 load_sums(const void* p) { return {_mm512_load_si512(p)}; }
inline I32x16 operator+(I32x16 a, I32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
template <int Bits>
[[gnu::always_inline]] inline I32x16 shift_left(I32x16 a) {
  return {_mm512_slli_epi32(a.v, Bits)};
}
// Rounds down.
template <int Bits>
[[gnu::always_inline]] inline I32x16 shift_right(I32x16 a) {
  return {_mm512_srai_epi32(a.v, Bits)};
}

inline Codes64 load_codes(const std::byte* p) { return {_mm512_load_si512(p)}; }
inline void store_codes(std::byte* p, Codes64 c) { _mm512_store_si512(p, c.v); }
inline Codes64 low_nibbles(Codes64 c) { return {_mm512_and_si512(c.v, _mm512_set1_epi8(15))}; }
inline Codes64 high_nibbles_16(Codes64 c) { return {_mm512_and_si512(c.v, _mm512_set1_epi8(-16))}; }
inline Codes64 high_nibbles(Codes64 c) {
  return {_mm512_and_si512(_mm512_srli_epi16(c.v, 4), _mm512_set1_epi8(15))};
}

// sums[n] += sum over i < 4 of c[n][i] * x[i], x signed
inline I32x16 add_products(I32x16 sums, Codes64 c, const std::int8_t* x) {
  std::int32_t four;
  __builtin_memcpy(&four, x, 4);
  return {_mm512_dpbusd_epi32(sums.v, c.v, _mm512_set1_epi32(four))};
}

inline Words32 load_words(const std::byte* p) { return {_mm512_load_si512(p)}; }
// 16 words, each twice.
inline Words32 load_words_twice(const std::byte* p) {
  const __m512i words =
      _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_or_si512(words, _mm512_slli_epi32(words, 16))};
}
// Of every pair its first word, or its second, twice.
inline Words32 firsts_twice(Words32 a) {
  const __m512i pairs =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13));
  return {_mm512_shuffle_epi8(a.v, pairs)};
}
inline Words32 seconds_twice(Words32 a) {
  const __m512i pairs =
      _mm512_broadcast_i32x4(_mm_setr_epi8(2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15));
  return {_mm512_shuffle_epi8(a.v, pairs)};
}
inline I32x16 firsts(Words32 a) { return shift_right<16>(shift_left<16>(I32x16{a.v})); }
inline I32x16 seconds(Words32 a) { return shift_right<16>(I32x16{a.v}); }
// Low words: of a product or a sum modulo 2^16.
inline Words32 times(Words32 a, std::int16_t factor) {
  return {_mm512_mullo_epi16(a.v, _mm512_set1_epi16(factor))};
}
// Pairs of `first` and `second_16` / 16, which fit into words.
inline Words32 paired(I32x16 first, I32x16 second_16) {
  return {_mm512_mask_mov_epi16(_mm512_slli_epi32(second_16.v, 12), 0x55555555, first.v)};
}
// sums[n] += a[n][0] * b[n][0] + a[n][1] * b[n][1]
inline I32x16 add_products(I32x16 sums, Words32 a, Words32 b) {
  return {_mm512_dpwssd_epi32(sums.v, a.v, b.v)};
}
inline I32x16 add_products(I32x16 sums, Words32 a, const std::int16_t* b) {
  std::int32_t pair;
  __builtin_memcpy(&pair, b, 4);
  return {_mm512_dpwssd_epi32(sums.v, a.v, _mm512_set1_epi32(pair))};
}
inline I64x16 add_products(I64x16 sums, I32x16 a, I32x16 b) {
  const __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(a.v, 32), _mm512_srli_epi64(b.v, 32));
  return {_mm512_add_epi64(sums.even, _mm512_mul_epi32(a.v, b.v)), _mm512_add_epi64(sums.odd, odd)};
}

// ref::float_of_sum
inline F32x16 floats_of(I64x16 sums) {
  const auto floats = [](__m512i sum) {
    const __m512i low = _mm512_and_si512(sum, _mm512_set1_epi64(0xFFFFFF));
    return _mm256_fmadd_ps(_mm512_cvtepi64_ps(_mm512_srai_epi64(sum, 24)), _mm256_set1_ps(0x1p24f),
                           _mm512_cvtepi64_ps(low));
  };
  const __m512i order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return {_mm512_permutex2var_ps(_mm512_castps256_ps512(floats(sums.even)), order,
                                 _mm512_castps256_ps512(floats(sums.odd)))};
}
// The same of 2^24 * high + low, of which low counts modulo 2^24.
inline F32x16 floats_of(I32x16 high, I32x16 low) {
  const __m512i rest = _mm512_and_si512(low.v, _mm512_set1_epi32(0xFFFFFF));
  return {_mm512_fmadd_ps(_mm512_cvtepi32_ps(high.v), _mm512_set1_ps(0x1p24f),
                          _mm512_cvtepi32_ps(rest))};
}

// ---- weights as digits. A line of codes becomes a line of bytes for each digit.

// codes * step + offset as 256 * high + low, high signed, low not
inline void split_line(Codes64 codes, Words32 step, Words32 offset, std::byte* high,
                       std::byte* low) {
  const __m512i even = _mm512_and_si512(codes.v, _mm512_set1_epi16(255));
  const __m512i odd = _mm512_srli_epi16(codes.v, 8);
  const __m512i first = _mm512_add_epi16(_mm512_mullo_epi16(even, step.v), offset.v);
  const __m512i second = _mm512_add_epi16(_mm512_mullo_epi16(odd, step.v), offset.v);
  constexpr int kAndOr = 0xEA;  // (a & b) | c
  _mm512_store_si512(low, _mm512_ternarylogic_epi32(first, _mm512_set1_epi16(255),
                                                    _mm512_slli_epi16(second, 8), kAndOr));
  _mm512_store_si512(high, _mm512_ternarylogic_epi32(second, _mm512_set1_epi16(-256),
                                                     _mm512_srli_epi16(first, 8), kAndOr));
}
// (codes - 128) * step as 2^16 * high + 2^8 * middle + low, only high signed
inline void split_wide_line(Codes64 codes, Words32 step, std::byte* high, std::byte* middle,
                            std::byte* low) {
  const __m512i signs = _mm512_xor_si512(codes.v, _mm512_set1_epi8(-128));
  const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(signs, 8), 8);
  const __m512i odd = _mm512_srai_epi16(signs, 8);
  const __m512i first = _mm512_mullo_epi16(even, step.v);
  const __m512i second = _mm512_mullo_epi16(odd, step.v);
  const __m512i ones = _mm512_set1_epi16(255);
  const __m512i others = _mm512_set1_epi16(-256);
  constexpr int kAndOr = 0xEA;
  _mm512_store_si512(low,
                     _mm512_ternarylogic_epi32(first, ones, _mm512_slli_epi16(second, 8), kAndOr));
  _mm512_store_si512(
      middle, _mm512_ternarylogic_epi32(second, others, _mm512_srli_epi16(first, 8), kAndOr));
  _mm512_store_si512(high, _mm512_ternarylogic_epi32(
                               _mm512_mulhi_epi16(even, step.v), ones,
                               _mm512_slli_epi16(_mm512_mulhi_epi16(odd, step.v), 8), kAndOr));
}

#else

struct I32x16 {
  std::int32_t v[kLanes];
};
struct I64x16 {
  std::int64_t v[kLanes];
};
struct Codes64 {
  std::uint8_t v[4 * kLanes];
};
struct Words32 {
  std::int16_t v[2 * kLanes];
};

template <class T, class Make>
[[gnu::always_inline]] inline T each(Make make) {
  T result;
  for (std::size_t i = 0; i < sizeof(result.v) / sizeof(result.v[0]); ++i) {
    result.v[i] = static_cast<std::remove_reference_t<decltype(result.v[0])> >(make(i));
  }
  return result;
}

inline I32x16 no_sums() { return {}; }
inline I64x16 no_wide_sums() { return {}; }
inline I32x16 broadcast_sum(std::int32_t x) {
  return each<I32x16>([&](std::size_t) { return x; });
}
inline I32x16 load_sums(const void* p) {
  I32x16 sums;
  __builtin_memcpy(sums.v, p, sizeof(sums.v));
  return sums;
}
// Modulo 2^32, as vectors add.
inline I32x16 operator+(const I32x16& a, const I32x16& b) {
  return each<I32x16>([&](std::size_t i) {
    return static_cast<std::uint32_t>(a.v[i]) + static_cast<std::uint32_t>(b.v[i]);
  });
}
template <int Bits>
inline I32x16 shift_left(const I32x16& a) {
  return each<I32x16>([&](std::size_t i) { return static_cast<std::uint32_t>(a.v[i]) << Bits; });
}
template <int Bits>
inline I32x16 shift_right(const I32x16& a) {
  return each<I32x16>([&](std::size_t i) { return a.v[i] >> Bits; });
}

inline Codes64 load_codes(const std::byte* p) {
  Codes64 c;
  __builtin_memcpy(c.v, p, sizeof(c.v));
  return c;
}
inline Codes64 low_nibbles(const Codes64& c) {
  return each<Codes64>([&](std::size_t i) { return c.v[i] & 15; });
}
inline Codes64 high_nibbles_16(const Codes64& c) {
  return each<Codes64>([&](std::size_t i) { return c.v[i] & 0xF0; });
}
inline Codes64 high_nibbles(const Codes64& c) {
  return each<Codes64>([&](std::size_t i) { return c.v[i] >> 4; });
}

inline I32x16 add_products(I32x16 sums, const Codes64& c, const std::int8_t* x) {
  for (std::size_t n = 0; n < kLanes; ++n) {
    for (std::size_t i = 0; i < 4; ++i) sums.v[n] += c.v[4 * n + i] * x[i];
  }
  return sums;
}

inline Words32 load_words(const std::byte* p) {
  Words32 words;
  __builtin_memcpy(words.v, p, sizeof(words.v));
  return words;
}
inline Words32 load_words_twice(const std::byte* p) {
  return each<Words32>([&](std::size_t i) {
    std::int16_t word;
    __builtin_memcpy(&word, p + i / 2 * sizeof(word), sizeof(word));
    return word;
  });
}
inline Words32 firsts_twice(const Words32& a) {
  return each<Words32>([&](std::size_t i) { return a.v[i / 2 * 2]; });
}
inline Words32 seconds_twice(const Words32& a) {
  return each<Words32>([&](std::size_t i) { return a.v[i / 2 * 2 + 1]; });
}
inline I32x16 firsts(const Words32& a) {
  return each<I32x16>([&](std::size_t i) { return a.v[2 * i]; });
}
inline I32x16 seconds(const Words32& a) {
  return each<I32x16>([&](std::size_t i) { return a.v[2 * i + 1]; });
}
inline Words32 times(const Words32& a, std::int16_t factor) {
  return each<Words32>([&](std::size_t i) { return a.v[i] * factor; });
}
inline Words32 paired(const I32x16& first, const I32x16& second_16) {
  return each<Words32>(
      [&](std::size_t i) { return i % 2 == 0 ? first.v[i / 2] : second_16.v[i / 2] >> 4; });
}
inline I32x16 add_products(I32x16 sums, const Words32& a, const Words32& b) {
  for (std::size_t i = 0; i < 2 * kLanes; ++i) {
    sums.v[i / 2] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums.v[i / 2]) +
                                              static_cast<std::uint32_t>(a.v[i] * b.v[i]));
  }
  return sums;
}
inline I32x16 add_products(const I32x16& sums, const Words32& a, const std::int16_t* b) {
  return add_products(sums, a, each<Words32>([&](std::size_t i) { return b[i % 2]; }));
}
inline I64x16 add_products(I64x16 sums, const I32x16& a, const I32x16& b) {
  for (std::size_t n = 0; n < kLanes; ++n) sums.v[n] += std::int64_t{a.v[n]} * b.v[n];
  return sums;
}

inline F32x16 floats_of(const I64x16& sums) {
  return each_lane([&](std::size_t i) { return ref::float_of_sum(sums.v[i]); });
}
inline F32x16 floats_of(const I32x16& high, const I32x16& low) {
  return each_lane([&](std::size_t i) {
    return ref::float_of_sum(std::int64_t{high.v[i]} * (1 << 24) + (low.v[i] & 0xFFFFFF));
  });
}

inline void split_line(const Codes64& codes, const Words32& step, const Words32& offset,
                       std::byte* high, std::byte* low) {
  for (std::size_t i = 0; i < 4 * kLanes; ++i) {
    const int weight = codes.v[i] * step.v[i / 4 * 2] + offset.v[i / 4 * 2];
    high[i] = static_cast<std::byte>(weight >> 8);
    low[i] = static_cast<std::byte>(weight);
  }
}
inline void split_wide_line(const Codes64& codes, const Words32& step, std::byte* high,
                            std::byte* middle, std::byte* low) {
  for (std::size_t i = 0; i < 4 * kLanes; ++i) {
    const int weight = (codes.v[i] - 128) * step.v[i / 4 * 2];
    high[i] = static_cast<std::byte>(weight >> 16);
    middle[i] = static_cast<std::byte>(weight >> 8);
    low[i] = static_cast<std::byte>(weight);
  }
}

#endif

}  // namespace pagoda::kernels::PAGODA_TILE_SET

// kernels/int8_bf16/ints.h by AVX2: sixteen outputs are two registers of eight.
//
// Codes that are nibbles are multiplied as bytes: 32 products at once, two of them in a word, and
// the products of a whole group (16 in each word, at most 16 * 15 * 128) fit there. Codes that are
// bytes would be too large for that: they are multiplied as words, with integers of x that are
// words, no longer limbs.
#pragma once

#include "kernels/int8_bf16/simd.h"
#include "kernels/ref/integer_gemm.h"

namespace pagoda::kernels::PAGODA_ISA {

// Rows of x whose sums 16 registers hold.
inline constexpr int kNibbleRows = 2;
inline constexpr int kByteRows = 4;

struct I32x16 {
  __m256i low;   // outputs 0 to 7
  __m256i high;  // outputs 8 to 15
};
struct I64x16 {
  __m256i low_even;  // outputs 0, 2, 4, 6
  __m256i low_odd;
  __m256i high_even;  // outputs 8, 10, …
  __m256i high_odd;
};
struct Codes64 {
  __m256i low;
  __m256i high;
};
struct Words16 {
  __m256i low;
  __m256i high;
};

inline __m256i load_half(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline __m256i broadcast_four(const void* p) {
  std::int32_t four;
  __builtin_memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}

// Makes GCC add up here: left alone, it multiplies a whole group first and adds at the end, and 16
// registers cannot hold that.
[[gnu::always_inline]] inline void settle(__m256i& low, __m256i& high) {
  asm("" : "+x"(low), "+x"(high));
}

inline I32x16 no_sums() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline I64x16 no_wide_sums() {
  const __m256i zero = _mm256_setzero_si256();
  return {zero, zero, zero, zero};
}
inline I32x16 broadcast_sum(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline I32x16 operator+(I32x16 a, I32x16 b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
inline I32x16 operator-(I32x16 a, I32x16 b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}
template <int Bits>
[[gnu::always_inline]] inline I32x16 shift_left(I32x16 a) {
  return {_mm256_slli_epi32(a.low, Bits), _mm256_slli_epi32(a.high, Bits)};
}
// Rounds down.
template <int Bits>
[[gnu::always_inline]] inline I32x16 shift_right(I32x16 a) {
  return {_mm256_srai_epi32(a.low, Bits), _mm256_srai_epi32(a.high, Bits)};
}

inline Codes64 load_codes(const std::byte* p) { return {load_half(p), load_half(p + 32)}; }

// Words stand twice in their 32 bits.
inline Words16 load_words(const std::byte* p) {
  const auto twice = [](const std::byte* from) {
    const __m256i words =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return _mm256_or_si256(words, _mm256_slli_epi32(words, 16));
  };
  return {twice(p), twice(p + 16)};
}
// Loads the first word of each of [16] pairs.
inline Words16 load_first_words(const std::byte* p) {
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13));
  return {_mm256_shuffle_epi8(load_half(p), order), _mm256_shuffle_epi8(load_half(p + 32), order)};
}
inline Words16 load_second_words(const std::byte* p) {
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15));
  return {_mm256_shuffle_epi8(load_half(p), order), _mm256_shuffle_epi8(load_half(p + 32), order)};
}
// Modulo 2^16.
inline Words16 times(Words16 a, std::int16_t factor) {
  const __m256i factors = _mm256_set1_epi16(factor);
  return {_mm256_mullo_epi16(a.low, factors), _mm256_mullo_epi16(a.high, factors)};
}
inline I32x16 to_sums(Words16 a) {
  return {_mm256_srai_epi32(a.low, 16), _mm256_srai_epi32(a.high, 16)};
}

// ---- a group of nibbles times one limb of each x

struct NibbleLine {
  Codes64 first;
  Codes64 second;
};
inline NibbleLine split_nibbles(Codes64 both) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {{_mm256_and_si256(both.low, mask), _mm256_and_si256(both.high, mask)},
          {_mm256_and_si256(_mm256_srli_epi16(both.low, 4), mask),
           _mm256_and_si256(_mm256_srli_epi16(both.high, 4), mask)}};
}

// Two words for each output.
struct NibbleProducts {
  __m256i low;
  __m256i high;
};
inline NibbleProducts no_nibble_products() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
inline NibbleProducts add_products(NibbleProducts sums, NibbleLine line, const std::int8_t* x) {
  const __m256i first = broadcast_four(x);
  const __m256i second = broadcast_four(x + 16);
  sums.low = _mm256_add_epi16(sums.low, _mm256_maddubs_epi16(line.first.low, first));
  sums.high = _mm256_add_epi16(sums.high, _mm256_maddubs_epi16(line.first.high, first));
  sums.low = _mm256_add_epi16(sums.low, _mm256_maddubs_epi16(line.second.low, second));
  sums.high = _mm256_add_epi16(sums.high, _mm256_maddubs_epi16(line.second.high, second));
  settle(sums.low, sums.high);
  return sums;
}
inline I32x16 add_group(I32x16 sums, NibbleProducts group, Words16 scale, Words16 zero_point,
                        const std::int16_t* x_sums) {
  const __m256i x = broadcast_four(x_sums);
  const auto both = [&](__m256i products, __m256i scales, __m256i zero_points) {
    return _mm256_add_epi32(_mm256_madd_epi16(products, scales), _mm256_madd_epi16(zero_points, x));
  };
  return sums + I32x16{both(group.low, scale.low, zero_point.low),
                       both(group.high, scale.high, zero_point.high)};
}

// ---- a group of bytes times integers of x

// The integers of columns 4j and 4j + 2, and of 4j + 1 and 4j + 3, as pairs of words.
struct ByteFactors {
  alignas(32) std::int32_t even[8];
  alignas(32) std::int32_t odd[8];
};
inline const ByteFactors* byte_factors(const std::int8_t* limbs, ByteFactors& room) {
  const __m256i high = load_half(limbs);
  const __m256i low = load_half(limbs + kBlockK);
  const __m256i even = _mm256_add_epi16(_mm256_slli_epi16(high, kLimbBits),
                                        _mm256_srai_epi16(_mm256_slli_epi16(low, 8), 8));
  const __m256i odd =
      _mm256_add_epi16(_mm256_and_si256(high, _mm256_set1_epi16(-256)), _mm256_srai_epi16(low, 8));
  _mm256_store_si256(reinterpret_cast<__m256i*>(room.even), even);
  _mm256_store_si256(reinterpret_cast<__m256i*>(room.odd), odd);
  return &room;
}
static_assert(kLimbBits == 8);

struct ByteLine {
  Codes64 even;
  Codes64 odd;
};
inline ByteLine split_bytes(Codes64 codes) {
  const __m256i mask = _mm256_set1_epi16(255);
  return {{_mm256_and_si256(codes.low, mask), _mm256_and_si256(codes.high, mask)},
          {_mm256_srli_epi16(codes.low, 8), _mm256_srli_epi16(codes.high, 8)}};
}

struct ByteProducts {
  I32x16 sums;
};
inline ByteProducts no_byte_products() { return {no_sums()}; }
inline ByteProducts add_products(ByteProducts products, ByteLine line, const ByteFactors* x,
                                 std::size_t index) {
  I32x16& sums = products.sums;
  const __m256i even = broadcast_four(x->even + index);
  const __m256i odd = broadcast_four(x->odd + index);
  sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(line.even.low, even));
  sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(line.even.high, even));
  sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(line.odd.low, odd));
  sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(line.odd.high, odd));
  settle(sums.low, sums.high);
  return products;
}
inline I32x16 to_sums(ByteProducts products) { return products.sums; }

// ---- sums of more than 32 bits

inline I64x16 add_products(I64x16 sums, I32x16 a, I32x16 b) {
  const auto odd = [](__m256i x, __m256i y) {
    return _mm256_mul_epi32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(y, 32));
  };
  return {_mm256_add_epi64(sums.low_even, _mm256_mul_epi32(a.low, b.low)),
          _mm256_add_epi64(sums.low_odd, odd(a.low, b.low)),
          _mm256_add_epi64(sums.high_even, _mm256_mul_epi32(a.high, b.high)),
          _mm256_add_epi64(sums.high_odd, odd(a.high, b.high))};
}

// ref::float_of_sum, for sums below 2^55: what is above the lowest 24 bits has no more than 32.
inline F32x16 floats_of(I64x16 sums) {
  const auto floats = [](__m256i even, __m256i odd) {
    const __m256i high =
        _mm256_blend_epi32(_mm256_srli_epi64(even, 24), _mm256_slli_epi64(odd, 8), 0xAA);
    const __m256i low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
    const __m256i rest = _mm256_and_si256(low, _mm256_set1_epi32(0xFFFFFF));
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(high), _mm256_set1_ps(0x1p24f),
                           _mm256_cvtepi32_ps(rest));
  };
  return {floats(sums.low_even, sums.low_odd), floats(sums.high_even, sums.high_odd)};
}

// ---- rows of x as limbs

// The larger of bits and those of the magnitudes of x: in this order NaN is above all.
inline I32x16 larger_bits(I32x16 bits, F32x16 x) {
  const auto larger = [](__m256i a, __m256 b) {
    const __m256i magnitudes =
        _mm256_and_si256(_mm256_castps_si256(b), _mm256_set1_epi32(0x7FFFFFFF));
    return _mm256_max_epu32(a, magnitudes);
  };
  return {larger(bits.low, x.low), larger(bits.high, x.high)};
}
inline std::int32_t fold_max(I32x16 bits) {
  const __m256i eight = _mm256_max_epi32(bits.low, bits.high);
  const __m128i four =
      _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}
inline I32x16 nearest_integers(F32x16 x) {
  return {_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high)};
}

// 64 integers of 8 bits.
inline Codes64 to_bytes(const I32x16 (&n)[4]) {
  // Packing keeps to lanes of 128 bits: fours come out of order.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const auto bytes = [&](I32x16 a, I32x16 b) {
    return _mm256_permutevar8x32_epi32(
        _mm256_packs_epi16(_mm256_packs_epi32(a.low, a.high), _mm256_packs_epi32(b.low, b.high)),
        order);
  };
  return {bytes(n[0], n[1]), bytes(n[2], n[3])};
}
inline void store_codes(std::int8_t* p, Codes64 c) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), c.low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), c.high);
}

// Sums of 16 limbs each: GroupSums of the first or of both groups of a K block.
inline void store_limb_sums(Codes64 high, Codes64 low, std::size_t groups, std::byte* sums) {
  const auto store_group = [](__m256i high_limbs, __m256i low_limbs, std::byte* to) {
    const auto fours = [](__m256i limbs) {
      return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), limbs),
                               _mm256_set1_epi16(1));
    };
    const __m256i eights = _mm256_hadd_epi32(fours(high_limbs), fours(low_limbs));
    const __m256i all = _mm256_hadd_epi32(eights, eights);
    const __m128i in_order =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi32(in_order, in_order));
  };
  store_group(high.low, low.low, sums);
  if (groups == 2) store_group(high.high, low.high, sums + sizeof(GroupSums));
}

}  // namespace pagoda::kernels::PAGODA_ISA

// kernels/int8_bf16/ints.h by AVX-512 with VNNI.
#pragma once

#include "kernels/int8_bf16/simd.h"
#include "kernels/ref/integer_gemm.h"

namespace pagoda::kernels::PAGODA_ISA {

inline constexpr int kNibbleRows = 4;
inline constexpr int kByteRows = 4;

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
struct Words16 {
  __m512i v;
};

inline I32x16 no_sums() { return {_mm512_setzero_si512()}; }
inline I64x16 no_wide_sums() { return {_mm512_setzero_si512(), _mm512_setzero_si512()}; }
inline I32x16 broadcast_sum(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
inline I32x16 load_sums(const void* p) { return {_mm512_load_si512(p)}; }
inline I32x16 operator+(I32x16 a, I32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline I32x16 operator-(I32x16 a, I32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
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
inline void store_codes(std::int8_t* p, Codes64 c) { _mm512_storeu_si512(p, c.v); }
inline Codes64 low_nibbles(Codes64 c) { return {_mm512_and_si512(c.v, _mm512_set1_epi8(15))}; }
inline Codes64 high_nibbles(Codes64 c) {
  return {_mm512_and_si512(_mm512_srli_epi16(c.v, 4), _mm512_set1_epi8(15))};
}

// sums[n] += sum over i < 4 of c[n][i] * x[i], x signed
inline I32x16 add_products(I32x16 sums, Codes64 c, const std::int8_t* x) {
  std::int32_t four;
  __builtin_memcpy(&four, x, 4);
  return {_mm512_dpbusd_epi32(sums.v, c.v, _mm512_set1_epi32(four))};
}

// Words stand twice in their 32 bits.
inline Words16 load_words(const std::byte* p) {
  const __m512i words =
      _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_or_si512(words, _mm512_slli_epi32(words, 16))};
}
// Loads the first word of each of [16] pairs.
inline Words16 load_first_words(const std::byte* p) {
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13));
  return {_mm512_shuffle_epi8(_mm512_load_si512(p), order)};
}
inline Words16 load_second_words(const std::byte* p) {
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15));
  return {_mm512_shuffle_epi8(_mm512_load_si512(p), order)};
}
// Modulo 2^16.
inline Words16 times(Words16 a, std::int16_t factor) {
  return {_mm512_mullo_epi16(a.v, _mm512_set1_epi16(factor))};
}
inline I32x16 to_sums(Words16 a) { return {_mm512_srai_epi32(a.v, 16)}; }

// The second nibbles times 16: what costs least.
struct NibbleLine {
  Codes64 first;
  Codes64 second;
};
inline NibbleLine split_nibbles(Codes64 both) {
  return {low_nibbles(both), {_mm512_and_si512(both.v, _mm512_set1_epi8(-16))}};
}
struct NibbleProducts {
  I32x16 first;
  I32x16 second;  // times 16
};
inline NibbleProducts no_nibble_products() { return {no_sums(), no_sums()}; }
inline NibbleProducts add_products(NibbleProducts sums, NibbleLine line, const std::int8_t* x) {
  return {add_products(sums.first, line.first, x), add_products(sums.second, line.second, x + 16)};
}
// `first` and `second` / 16 fit into words: a pair of them is multiplied by one instruction.
inline I32x16 add_group(I32x16 sums, NibbleProducts group, Words16 scale, Words16 zero_point,
                        const std::int16_t* x_sums) {
  const __m512i pairs =
      _mm512_mask_mov_epi16(_mm512_slli_epi32(group.second.v, 12), 0x55555555, group.first.v);
  std::int32_t x_pair;
  __builtin_memcpy(&x_pair, x_sums, 4);
  return {_mm512_dpwssd_epi32(_mm512_dpwssd_epi32(sums.v, pairs, scale.v), zero_point.v,
                              _mm512_set1_epi32(x_pair))};
}

// Bytes are multiplied with the limbs of x as they stand.
struct ByteFactors {};
inline const std::int8_t* byte_factors(const std::int8_t* limbs, ByteFactors&) { return limbs; }
using ByteLine = Codes64;
inline ByteLine split_bytes(Codes64 codes) { return codes; }
struct ByteProducts {
  I32x16 high;
  I32x16 low;
};
inline ByteProducts no_byte_products() { return {no_sums(), no_sums()}; }
inline ByteProducts add_products(ByteProducts sums, ByteLine line, const std::int8_t* limbs,
                                 std::size_t index) {
  return {add_products(sums.high, line, limbs + 4 * index),
          add_products(sums.low, line, limbs + kBlockK + 4 * index)};
}
inline I32x16 to_sums(ByteProducts products) {
  return shift_left<kLimbBits>(products.high) + products.low;
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

// ---- rows of x as limbs

// The larger of bits and those of the magnitudes of x: in this order NaN is above all.
inline I32x16 larger_bits(I32x16 bits, F32x16 x) {
  const __m512i magnitudes =
      _mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7FFFFFFF));
  return {_mm512_max_epu32(bits.v, magnitudes)};
}
inline std::int32_t fold_max(I32x16 bits) { return _mm512_reduce_max_epi32(bits.v); }
inline I32x16 nearest_integers(F32x16 x) { return {_mm512_cvtps_epi32(x.v)}; }

// 64 integers of 8 bits.
inline Codes64 to_bytes(const I32x16 (&n)[4]) {
  // Packing keeps to lanes of 128 bits: fours come out of order.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return {_mm512_permutexvar_epi32(order, _mm512_packs_epi16(_mm512_packs_epi32(n[0].v, n[1].v),
                                                             _mm512_packs_epi32(n[2].v, n[3].v)))};
}

// Sums of 16 limbs each: GroupSums of the first or of both groups of a K block.
inline void store_limb_sums(Codes64 high, Codes64 low, std::size_t groups, std::byte* sums) {
  const __m512i ones = _mm512_set1_epi8(1);
  const __m512i zero = _mm512_setzero_si512();
  const __m512i high_fours = _mm512_dpbusd_epi32(zero, ones, high.v);
  const __m512i low_fours = _mm512_dpbusd_epi32(zero, ones, low.v);
  const __m512i eights = _mm512_add_epi32(_mm512_unpacklo_epi32(high_fours, low_fours),
                                          _mm512_unpackhi_epi32(high_fours, low_fours));
  const __m512i all = _mm512_add_epi32(eights, _mm512_shuffle_epi32(eights, _MM_PERM_BADC));
  const __m512i order = _mm512_setr_epi32(0, 4, 1, 5, 8, 12, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m128i both =
      _mm256_castsi256_si128(_mm512_cvtepi32_epi16(_mm512_permutexvar_epi32(order, all)));
  if (groups == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums), both);
  } else {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(sums), both);
  }
}

// ---- weights as limbs. A line of codes becomes a line of bytes for each limb.

// codes * scale + zero_point as 256 * high + low, high signed, low not
inline void split_line(Codes64 codes, Words16 scale, Words16 zero_point, std::byte* high,
                       std::byte* low) {
  const __m512i even = _mm512_and_si512(codes.v, _mm512_set1_epi16(255));
  const __m512i odd = _mm512_srli_epi16(codes.v, 8);
  const __m512i first = _mm512_add_epi16(_mm512_mullo_epi16(even, scale.v), zero_point.v);
  const __m512i second = _mm512_add_epi16(_mm512_mullo_epi16(odd, scale.v), zero_point.v);
  constexpr int kAndOr = 0xEA;  // (a & b) | c
  _mm512_store_si512(low, _mm512_ternarylogic_epi32(first, _mm512_set1_epi16(255),
                                                    _mm512_slli_epi16(second, 8), kAndOr));
  _mm512_store_si512(high, _mm512_ternarylogic_epi32(second, _mm512_set1_epi16(-256),
                                                     _mm512_srli_epi16(first, 8), kAndOr));
}
// (codes - 128) * scale as 2^16 * high + 2^8 * middle + low, only high signed
inline void split_wide_line(Codes64 codes, Words16 scale, std::byte* high, std::byte* middle,
                            std::byte* low) {
  const __m512i signs = _mm512_xor_si512(codes.v, _mm512_set1_epi8(-128));
  const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(signs, 8), 8);
  const __m512i odd = _mm512_srai_epi16(signs, 8);
  const __m512i first = _mm512_mullo_epi16(even, scale.v);
  const __m512i second = _mm512_mullo_epi16(odd, scale.v);
  const __m512i ones = _mm512_set1_epi16(255);
  const __m512i others = _mm512_set1_epi16(-256);
  constexpr int kAndOr = 0xEA;
  _mm512_store_si512(low,
                     _mm512_ternarylogic_epi32(first, ones, _mm512_slli_epi16(second, 8), kAndOr));
  _mm512_store_si512(
      middle, _mm512_ternarylogic_epi32(second, others, _mm512_srli_epi16(first, 8), kAndOr));
  _mm512_store_si512(high, _mm512_ternarylogic_epi32(
                               _mm512_mulhi_epi16(even, scale.v), ones,
                               _mm512_slli_epi16(_mm512_mulhi_epi16(odd, scale.v), 8), kAndOr));
}

}  // namespace pagoda::kernels::PAGODA_ISA

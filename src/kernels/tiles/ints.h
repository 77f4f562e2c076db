// 16 sums of integers and lines of 64 codes, on AVX-512 or in plain C++.
#pragma once

#include "kernels/tiles/simd.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

#if defined(__AVX512VNNI__)

struct I32x16 {
  __m512i v;
};
// [16][4] unsigned bytes
struct Codes64 {
  __m512i v;
};

inline I32x16 no_sums() { return {_mm512_setzero_si512()}; }
inline I32x16 load_sums(const void* p) { return {_mm512_load_si512(p)}; }

inline Codes64 load_codes(const std::byte* p) { return {_mm512_load_si512(p)}; }
inline Codes64 low_nibbles(Codes64 c) { return {_mm512_and_si512(c.v, _mm512_set1_epi8(15))}; }
inline Codes64 high_nibbles(Codes64 c) {
  return {_mm512_and_si512(_mm512_srli_epi16(c.v, 4), _mm512_set1_epi8(15))};
}
// 16 times the nibbles
inline Codes64 low_nibbles_16(Codes64 c) {
  return {_mm512_and_si512(_mm512_slli_epi16(c.v, 4), _mm512_set1_epi8(-16))};
}
inline Codes64 high_nibbles_16(Codes64 c) { return {_mm512_and_si512(c.v, _mm512_set1_epi8(-16))}; }
inline void store_codes(std::byte* p, Codes64 c) { _mm512_store_si512(p, c.v); }

// sums[n] += sum over i < 4 of c[n][i] * x[i], x signed
inline I32x16 add_products(I32x16 sums, Codes64 c, const std::int8_t* x) {
  std::int32_t four;
  __builtin_memcpy(&four, x, 4);
  return {_mm512_dpbusd_epi32(sums.v, c.v, _mm512_set1_epi32(four))};
}
// 16 * high + low as floats
inline F32x16 joined(I32x16 high, I32x16 low) {
  return {_mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high.v, 4), low.v))};
}
inline F32x16 to_floats(I32x16 sums) { return {_mm512_cvtepi32_ps(sums.v)}; }

#else

struct I32x16 {
  std::int32_t v[kLanes];
};
struct Codes64 {
  std::uint8_t v[4 * kLanes];
};

inline I32x16 no_sums() { return {}; }
inline I32x16 load_sums(const void* p) {
  I32x16 sums;
  __builtin_memcpy(sums.v, p, sizeof(sums.v));
  return sums;
}

template <class Make>
[[gnu::always_inline]] inline Codes64 each_code(const Codes64& c, Make make) {
  Codes64 result;
  for (std::size_t i = 0; i < 4 * kLanes; ++i)
    result.v[i] = static_cast<std::uint8_t>(make(c.v[i]));
  return result;
}
inline Codes64 load_codes(const std::byte* p) {
  Codes64 c;
  __builtin_memcpy(c.v, p, sizeof(c.v));
  return c;
}
inline Codes64 low_nibbles(const Codes64& c) {
  return each_code(c, [](unsigned u) { return u & 15; });
}
inline Codes64 high_nibbles(const Codes64& c) {
  return each_code(c, [](unsigned u) { return u >> 4; });
}
inline Codes64 low_nibbles_16(const Codes64& c) {
  return each_code(c, [](unsigned u) { return u << 4; });
}
inline Codes64 high_nibbles_16(const Codes64& c) {
  return each_code(c, [](unsigned u) { return u & 0xF0; });
}
inline void store_codes(std::byte* p, const Codes64& c) { __builtin_memcpy(p, c.v, sizeof(c.v)); }

inline I32x16 add_products(I32x16 sums, const Codes64& c, const std::int8_t* x) {
  for (std::size_t n = 0; n < kLanes; ++n) {
    for (std::size_t i = 0; i < 4; ++i) sums.v[n] += c.v[4 * n + i] * x[i];
  }
  return sums;
}
inline F32x16 to_floats(const I32x16& sums) {
  return each_lane([&](std::size_t i) { return static_cast<float>(sums.v[i]); });
}
inline F32x16 joined(const I32x16& high, const I32x16& low) {
  return each_lane([&](std::size_t i) { return static_cast<float>(16 * high.v[i] + low.v[i]); });
}

#endif

}  // namespace pagoda::kernels::PAGODA_TILE_SET

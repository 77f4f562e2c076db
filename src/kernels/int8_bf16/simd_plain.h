// kernels/int8_bf16/simd.h in plain C++: what the other forms do, lane by lane.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"

// Registers are arrays here: there is nothing to gain.
#define PAGODA_ISA_UNROLL

namespace pagoda::kernels::PAGODA_ISA {

inline constexpr int kRowsInRegisters = 1;

struct F32x16 {
  float v[kLanes];
};

template <class Make>
[[gnu::always_inline]] inline F32x16 each_lane(Make make) {
  F32x16 result;
  for (std::size_t i = 0; i < kLanes; ++i) result.v[i] = make(i);
  return result;
}

inline F32x16 broadcast(float x) {
  return each_lane([&](std::size_t) { return x; });
}
inline F32x16 load(const float* p) {
  F32x16 a;
  std::memcpy(a.v, p, sizeof(a.v));
  return a;
}
inline void store(float* p, const F32x16& a) { std::memcpy(p, a.v, sizeof(a.v)); }
inline F32x16 operator+(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] + b.v[i]; });
}
inline F32x16 operator-(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] - b.v[i]; });
}
inline F32x16 operator*(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] * b.v[i]; });
}
inline F32x16 operator/(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] / b.v[i]; });
}
inline F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  return each_lane([&](std::size_t i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
}
// Like the instruction: b where either is NaN.
inline F32x16 max(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}

inline F32x16 min(const F32x16& a, const F32x16& b) {
  return each_lane([&](std::size_t i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}

inline void load_pairs(const float* p, F32x16& first, F32x16& second) {
  first = each_lane([&](std::size_t i) { return p[2 * i]; });
  second = each_lane([&](std::size_t i) { return p[2 * i + 1]; });
}
inline void store_pairs(float* p, const F32x16& first, const F32x16& second) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    p[2 * i] = first.v[i];
    p[2 * i + 1] = second.v[i];
  }
}

inline F32x16 zero_where_below(const F32x16& x, float limit, const F32x16& value) {
  return each_lane([&](std::size_t i) { return x.v[i] < limit ? 0.0f : value.v[i]; });
}
inline F32x16 scale_by_power(const F32x16& value, const F32x16& steps) {
  return each_lane([&](std::size_t i) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value.v[i]) +
                                (std::bit_cast<std::uint32_t>(steps.v[i]) << 23));
  });
}
inline F32x16 scale_by_power_above(const F32x16& x, float limit, const F32x16& value,
                                   const F32x16& steps) {
  return zero_where_below(x, limit, scale_by_power(value, steps));
}
inline F32x16 select(std::uint32_t lanes, const F32x16& a, const F32x16& otherwise) {
  return each_lane([&](std::size_t i) { return (lanes >> i & 1) != 0 ? a.v[i] : otherwise.v[i]; });
}

inline float fold_max(const F32x16& a) {
  float highest = a.v[0];
  for (const float value : a.v) highest = value > highest ? value : highest;
  return highest;
}
inline float fold_sum(F32x16 a) {
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) a.v[i] += a.v[i + width];
  }
  return a.v[0];
}

// Zero for subnormals, the sign kept.
inline float without_subnormals(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}
// Plain C++ cannot ask for it: where it matters, without_subnormals() is called.
class [[maybe_unused]] FlushSubnormals {};
inline F32x16 without_subnormals(const F32x16& x) {
  return each_lane([&](std::size_t i) { return without_subnormals(x.v[i]); });
}

inline void store_bf16(std::uint16_t* p, const F32x16& a) {
  for (std::size_t i = 0; i < kLanes; ++i) p[i] = bf16_from_float(without_subnormals(a.v[i]));
}
inline void store_bf16(std::uint16_t* p, const F32x16& low, const F32x16& high) {
  store_bf16(p, low);
  store_bf16(p + kLanes, high);
}

inline void store_bf16_apart(std::uint16_t* p, const F32x16& a) {
  for (std::size_t i = 0; i < kLanes; ++i) p[2 * i] = bf16_from_float(without_subnormals(a.v[i]));
}

inline F32x16 load_fp16(const std::uint16_t* p) {
  return each_lane([&](std::size_t i) { return float_from_fp16(p[i]); });
}

inline F32x16 load_ints(const std::int32_t* p) {
  return each_lane([&](std::size_t i) { return static_cast<float>(p[i]); });
}
// The nearest integers, ties to even, of numbers within 16 bits. NaN gives 0.
inline void store_nearest(std::int16_t* p, const F32x16& a) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    p[i] = std::isnan(a.v[i]) ? std::int16_t{0} : static_cast<std::int16_t>(std::nearbyint(a.v[i]));
  }
}

// Lane i: halves 2 i and 2 i + 1. Subnormals become zero.
inline void load_bf16_pairs(const std::byte* p, F32x16& first, F32x16& second) {
  std::uint16_t halves[2 * kLanes];
  std::memcpy(halves, p, sizeof(halves));
  first =
      each_lane([&](std::size_t i) { return without_subnormals(float_from_bf16(halves[2 * i])); });
  second = each_lane(
      [&](std::size_t i) { return without_subnormals(float_from_bf16(halves[2 * i + 1])); });
}

inline void fetch_line(const std::byte*) {}

}  // namespace pagoda::kernels::PAGODA_ISA

// The one exponential of all kernels, defined operation by operation.
//
//   x >= 88 counts as 88; x < -87 gives exactly 0; else
//   n = nearest integer to x * log2(e);  r = x - n * ln 2 in two steps;
//   e^r by a polynomial of degree 7 in r (coefficients of the Cephes library);  result e^r * 2^n.
//
// Every multiply-add is fused. Vector versions repeat these steps lane by lane, bit for bit.
//
// Beside it, for the weights of keys in the int8_bf16 numerics, which are rounded to 8 bits when
// they have been added up, a power of two that is half as long:
//
//   t < -126 gives exactly 0; else n = nearest integer to t, r = t - n,
//   2^r by a polynomial of degree 4 (within 3e-6 of it, 1 at 0);  result 2^r * 2^n.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace pagoda::kernels::exp_steps {

inline constexpr float kHighest = 88.0f;
inline constexpr float kLowest = -87.0f;
inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kLn2High = 0.693359375f;  // few bits: n * kLn2High is exact
inline constexpr float kLn2Low = -2.12194440e-4f;
// Adding this to |v| < 2^22 leaves v rounded to an integer in the low mantissa bits.
inline constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23
inline constexpr float kP0 = 1.9875691500e-4f;
inline constexpr float kP1 = 1.3981999507e-3f;
inline constexpr float kP2 = 8.3334519073e-3f;
inline constexpr float kP3 = 4.1665795894e-2f;
inline constexpr float kP4 = 1.6666665459e-1f;
inline constexpr float kP5 = 5.0000001201e-1f;

inline constexpr float kLowestPower = -126.0f;
inline constexpr float kQ1 = 6.9312418e-1f;
inline constexpr float kQ2 = 2.4024099e-1f;
inline constexpr float kQ3 = 5.5906430e-2f;
inline constexpr float kQ4 = 9.5828548e-3f;

}  // namespace pagoda::kernels::exp_steps

namespace pagoda::kernels {

inline float exp_fixed(float x) {
  namespace s = exp_steps;
  if (x < s::kLowest) return 0.0f;
  x = x > s::kHighest ? s::kHighest : x;
  const float shifted = std::fma(x, s::kLog2E, s::kRounder);
  const float n = shifted - s::kRounder;
  float r = std::fma(n, -s::kLn2High, x);
  r = std::fma(n, -s::kLn2Low, r);
  float p = std::fma(s::kP0, r, s::kP1);
  p = std::fma(p, r, s::kP2);
  p = std::fma(p, r, s::kP3);
  p = std::fma(p, r, s::kP4);
  p = std::fma(p, r, s::kP5);
  const float e = std::fma(p, r * r, r) + 1.0f;
  const std::uint32_t n_bits = std::bit_cast<std::uint32_t>(shifted) << 23;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(e) + n_bits);
}

// 2^power * exp_fixed(x), exactly, for kLowest <= x <= kHighest and an even power, on any vector of
// floats that has +, -, *, fma, scale_by_power and splat_like.
template <class Vector>
[[gnu::always_inline]] inline Vector exp_within(Vector x, float power) {
  namespace s = exp_steps;
  const auto all = [&x](float value) { return splat_like(x, value); };
  const Vector rounder = all(s::kRounder + power);
  const Vector shifted = fma(x, all(s::kLog2E), rounder);
  const Vector n = shifted - rounder;
  Vector r = fma(n, all(-s::kLn2High), x);
  r = fma(n, all(-s::kLn2Low), r);
  Vector p = fma(all(s::kP0), r, all(s::kP1));
  p = fma(p, r, all(s::kP2));
  p = fma(p, r, all(s::kP3));
  p = fma(p, r, all(s::kP4));
  p = fma(p, r, all(s::kP5));
  const Vector e = fma(p, r * r, r) + all(1.0f);
  return scale_by_power(e, shifted);
}

// 2^t for t below 2^22, which holds since scores exceed their maximum by its rounding at most.
inline float power_fixed(float t) {
  namespace s = exp_steps;
  if (t < s::kLowestPower) return 0.0f;
  const float shifted = t + s::kRounder;
  const float r = t - (shifted - s::kRounder);
  float p = std::fma(s::kQ4, r, s::kQ3);
  p = std::fma(p, r, s::kQ2);
  p = std::fma(p, r, s::kQ1);
  p = std::fma(p, r, 1.0f);
  const std::uint32_t n_bits = std::bit_cast<std::uint32_t>(shifted) << 23;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + n_bits);
}

}  // namespace pagoda::kernels

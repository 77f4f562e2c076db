// Converts eight-bit floats (OCP E4M3: one sign, four exponent and three mantissa bits, no
// infinities) from and to float, one value at a time, rounding to nearest even; magnitudes above
// the largest value become 448. These functions define the bits; conversions elsewhere must equal
// them.
#pragma once

#include <bit>
#include <cstdint>

namespace pagoda {

inline constexpr float kE4M3Max = 448.0f;

inline float float_from_e4m3(std::uint8_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x80u} << 24;
  const std::uint32_t magnitude = bits & 0x7Fu;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000u);
  if (magnitude < 8) {  // zero, subnormal: mantissa * 2^-9 is exact in float
    const float value = static_cast<float>(magnitude) * 0x1.0p-9f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude + (120u << 3)) << 20));
}

inline std::uint8_t e4m3_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint8_t>(sign | 0x7Fu);
  if (magnitude < 0x3C800000u) {  // subnormal: adding 2^14 rounds at 2^-9
    const float shifted = std::bit_cast<float>(magnitude) + 0x1.0p14f;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x46800000u));
  }
  if (magnitude >= 0x43E00000u) return static_cast<std::uint8_t>(sign | 0x7Eu);  // 448
  const std::uint32_t round = 0x7FFFFu + ((magnitude >> 20) & 1u);
  return static_cast<std::uint8_t>(sign | (((magnitude + round) >> 20) - (120u << 3)));
}

}  // namespace pagoda

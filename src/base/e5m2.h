// Converts eight-bit floats (OCP E5M2: the upper byte of an fp16) from and to float, one value at a
// time, rounding to nearest even. These functions define the bits; conversions elsewhere must equal
// them.
#pragma once

#include <bit>
#include <cstdint>

#include "base/half.h"

namespace pagoda {

inline constexpr float kE5M2Max = 57344.0f;

inline float float_from_e5m2(std::uint8_t bits) {
  return float_from_fp16(static_cast<std::uint16_t>(bits << 8));
}

// Rounds once: not by way of fp16, which would round ties away that were none.
inline std::uint8_t e5m2_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint8_t>(sign | 0x7Fu);
  if (magnitude < 0x38800000u) {  // below 2^-14, subnormal: adding 2^7 rounds at 2^-16
    const float shifted = std::bit_cast<float>(magnitude) + 0x1.0p7f;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x43000000u));
  }
  const std::uint32_t round = 0xFFFFFu + ((magnitude >> 21) & 1u);
  const std::uint32_t code = ((magnitude + round) >> 21) - (112u << 2);
  return static_cast<std::uint8_t>(sign | (code < 0x7Cu ? code : 0x7Cu));
}

}  // namespace pagoda

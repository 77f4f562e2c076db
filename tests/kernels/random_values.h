// Seeded values for kernel tests, with what real data has and tests forget: outliers, zeros of
// both signs, denormals.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/random.h"

namespace pagoda::kernels {

inline std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double u = random_unit(seed, 0, i);
    values[i] = static_cast<float>(2 * u - 1);
    switch (random_bits(seed, 1, i) % 64) {
      case 0:
        values[i] *= 30.0f;
        break;
      case 1:
        values[i] = -0.0f;
        break;
      case 2:
        values[i] *= 1e-41f;
        break;
      default:
        break;
    }
  }
  return values;
}

// Bytes that no type reads as infinity or NaN: every 16- and 32-bit float in them is below 2,
// because the top bit of its exponent is 0 wherever it starts.
inline std::vector<std::byte> random_weight_bytes(std::size_t count, std::uint64_t seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(random_bits(seed, 2, i) & 0xBF);
  }
  return bytes;
}

// Equal bit for bit; also true for NaN and zeros of the same sign.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace pagoda::kernels

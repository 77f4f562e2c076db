// A digest of bytes that a GPU and a host compute alike: it tells whether what was uploaded is what
// lies in device memory.
//
//   digest = sum over words i of mix_word(word i, i), modulo 2^64
//
// A word is 8 bytes, little endian; bytes missing in the last word are 0. The sum of integers has
// no order, so any number of threads gives the same digest. It detects damage, not forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "device/device.h"

namespace pagoda::kernels::cuda {

// The finaliser of SplitMix64 (Steele et al. 2014) over a word and its index.
constexpr std::uint64_t mix_word(std::uint64_t word, std::uint64_t index) {
  std::uint64_t z = word + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// The digest of `bytes` whose first word has index `first_word`: digests of parts add up.
inline std::uint64_t digest(std::span<const std::byte> bytes, std::uint64_t first_word = 0) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, bytes.size() - at < 8 ? bytes.size() - at : 8);
    sum += mix_word(word, first_word + at / 8);
  }
  return sum;
}

// Adds the digest of device memory to *sum, which is on the device. `data` is aligned to 8 bytes.
void launch_digest(const std::byte* data, std::uint64_t bytes, std::uint64_t* sum,
                   device::StreamHandle stream);

}  // namespace pagoda::kernels::cuda

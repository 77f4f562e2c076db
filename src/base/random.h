// Random numbers by counter: the number at (seed, stream, index) is a pure function of the three,
// so that the order of calls, the batch and the thread cannot change it. The functions are constant
// expressions, so that kernels on a GPU draw by the same code. The generator is Philox4x32-10
// (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
#pragma once

#include <array>
#include <cstdint>

namespace pagoda {

namespace philox {

inline constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
inline constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
inline constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
inline constexpr int kRounds = 10;

constexpr std::uint32_t low_half(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high_half(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace philox

// Philox4x32-10 gives 128 random bits for a 128-bit counter and a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  using namespace philox;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {high_half(product1) ^ counter[1] ^ key[0], low_half(product1),
               high_half(product0) ^ counter[3] ^ key[1], low_half(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// Returns 64 random bits at (seed, stream, index).
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  using namespace philox;
  const auto bits =
      philox4x32({low_half(index), high_half(index), low_half(stream), high_half(stream)},
                 {low_half(seed), high_half(seed)});
  return std::uint64_t{bits[0]} << 32 | bits[1];
}

// Returns a multiple of 2^-53, uniform in [0, 1).
constexpr double random_unit(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(random_bits(seed, stream, index) >> 11) * 0x1.0p-53;
}

// Returns a seed from the operating system's entropy, which no other process has.
std::uint64_t fresh_seed();

}  // namespace pagoda

// Random numbers by counter: the number at (seed, stream, index) is a pure function of the three,
// so that who asks first, in which batch and on which thread cannot change it.
// The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
#pragma once

#include <array>
#include <cstdint>

namespace pagoda {

// Philox4x32-10: 128 random bits for a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// 64 random bits at (seed, stream, index).
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// Uniform in [0, 1), a multiple of 2^-53.
double random_unit(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// A seed that no other process has: from the operating system's entropy.
std::uint64_t fresh_seed();

}  // namespace pagoda

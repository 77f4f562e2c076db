// Loops that do nothing but multiply and add in registers, one for each kind of arithmetic that
// kernels may use: the ceiling of what this CPU can compute.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace pagoda::bench {

struct MultiplyProbe {
  std::string_view kind;  // "fp32 AVX-512"
  // Does at least `rounds` rounds and returns how many multiply-adds they were.
  std::uint64_t (*run)(std::uint64_t rounds);
};

// Those that run on this CPU, at least one.
std::vector<MultiplyProbe> multiply_probes();

}  // namespace pagoda::bench

// A search by halves for how many tokens fit, where fewer fit wherever more do.
#pragma once

#include <cstdint>

namespace pagoda::sched {

// Returns the largest number up to `most` that fits; 0 where none does.
template <class Fits>
std::uint64_t largest_fitting(std::uint64_t most, const Fits& fits) {
  if (fits(most)) return most;
  std::uint64_t low = 0;
  std::uint64_t high = most;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace pagoda::sched

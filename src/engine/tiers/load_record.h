// LoadRecord says what tiers gave to one sequence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pagoda::engine {

inline constexpr std::size_t kTiersMax = 4;

struct LoadRecord {
  std::array<std::uint64_t, kTiersMax> tokens = {};  // [store], tokens of its prompt
  std::uint64_t tokens_offered = 0;  // tokens that the tiers had and the pool had not
  double waited_s = 0;               // seconds in the queue, for pages on their way
  double saved_s = 0;  // an estimate: what computing those tokens would have taken beyond that

  std::uint64_t tokens_loaded() const {
    std::uint64_t all = 0;
    for (const std::uint64_t count : tokens) all += count;
    return all;
  }
};

}  // namespace pagoda::engine

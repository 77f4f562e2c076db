// Rotary position embedding (RoPE): the angle of every pair at every position.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

namespace pagoda::model {

// Immutable after construction. Angles are computed in double from the absolute position alone,
// and their cosines and sines by base/elementary.h: all hosts that share a cache rotate alike.
class RopeTable {
 public:
  // `divisors` ([dims / 2], or empty) divide the frequencies: the llama3 factors of a file.
  RopeTable(const RopeConfig& config, std::span<const float> divisors);

  std::size_t pairs() const { return frequencies_.size(); }
  // Writes the cosines and sines of one position, [pairs] each.
  void fill(std::uint64_t position, float* cosines, float* sines) const;

 private:
  std::vector<double> frequencies_;  // radians per token, [pairs]
  double magnitude_;
};

// Returns the factor that multiplies the rotated queries of a position.
float query_factor(const QueryScale& scale, std::uint64_t position);

}  // namespace pagoda::model

// Numbers measured again and again, in short.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/assert.h"

namespace pagoda::bench {

// The smallest sample that at least `share` (above 0, to 1) of all do not exceed: nearest rank.
inline double percentile(std::vector<double> samples, double share) {
  ASSERT(!samples.empty() && share > 0 && share <= 1, "a share of something");
  const double rank = std::ceil(share * static_cast<double>(samples.size()));
  const std::size_t index = std::min(samples.size(), static_cast<std::size_t>(rank)) - 1;
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(index),
                   samples.end());
  return samples[index];
}

// The middle sample, or the mean of the two in the middle.
inline double median(std::vector<double> samples) {
  ASSERT(!samples.empty(), "something was measured");
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

}  // namespace pagoda::bench

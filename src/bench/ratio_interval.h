// How sure a ratio of two programs' speeds is that were measured round by round.
#pragma once

#include <optional>
#include <span>

namespace pagoda::bench {

// The interval holds the true ratio with 95 % probability if the rounds are independent and their
// logarithms normal (Student's t over the logarithms).
struct RatioInterval {
  double ratio;  // the geometric mean of the rounds
  double from;
  double to;

  // The interval's width as a share of the ratio: 0.05 for 0.975 to 1.025.
  double width() const { return (to - from) / ratio; }
};

// Returns nothing for fewer than two rounds, which say nothing of each other.
std::optional<RatioInterval> ratio_interval(std::span<const double> round_ratios);

}  // namespace pagoda::bench

#include "bench/ratio_interval.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

namespace pagoda::bench {

std::optional<RatioInterval> ratio_interval(std::span<const double> round_ratios) {
  if (round_ratios.size() < 2) return std::nullopt;
  const auto rounds = static_cast<double>(round_ratios.size());
  double mean = 0;
  for (const double ratio : round_ratios) mean += std::log(ratio) / rounds;
  double variance = 0;
  for (const double ratio : round_ratios) {
    variance += (std::log(ratio) - mean) * (std::log(ratio) - mean) / (rounds - 1);
  }
  constexpr double kTail = 0.025;  // on either side
  const double quantile =
      boost::math::quantile(boost::math::complement(boost::math::students_t(rounds - 1), kTail));
  const double half = quantile * std::sqrt(variance / rounds);
  return RatioInterval{std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

}  // namespace pagoda::bench

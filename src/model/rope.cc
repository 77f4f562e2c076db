#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/assert.h"
#include "base/elementary.h"

namespace pagoda::model {
namespace {

// Returns the pair (as a real number) that turns `rotations` times over the original context.
double pair_of_rotations(const RopeConfig& config, double rotations) {
  return config.dims * natural_log(config.original_context / (rotations * 2 * std::numbers::pi)) /
         (2 * natural_log(config.base));
}

// YaRN (Peng et al. 2023): fast pairs keep their frequency, slow ones are stretched by the
// factor, with a linear ramp between. Returns how much of the pair's own frequency is kept.
double yarn_kept_share(const RopeConfig& config, double pair) {
  const bool rounds = config.rounds_yarn_ramp;
  const double fast = pair_of_rotations(config, config.yarn_beta_fast);
  const double slow = pair_of_rotations(config, config.yarn_beta_slow);
  const double low = std::max(0.0, rounds ? std::floor(fast) : fast);
  const double high = std::min(config.dims - 1.0, rounds ? std::ceil(slow) : slow);
  const double ramp = (pair - low) / std::max(0.001, high - low);
  return 1.0 - std::clamp(ramp, 0.0, 1.0);
}

}  // namespace

RopeTable::RopeTable(const RopeConfig& config, std::span<const float> divisors)
    : frequencies_(config.dims / 2), magnitude_(config.attention_factor) {
  ASSERT(divisors.empty() || divisors.size() == frequencies_.size(), "one divisor per pair");
  for (std::size_t pair = 0; pair < frequencies_.size(); ++pair) {
    const double index = static_cast<double>(pair);
    const double plain =
        power(config.base, -2.0 * index / config.dims) / (divisors.empty() ? 1.0 : divisors[pair]);
    const double stretched = plain / config.factor;
    switch (config.scaling) {
      case RopeScaling::kNone:
      case RopeScaling::kLongRope:  // the divisors are all there is to it
        frequencies_[pair] = plain;
        break;
      case RopeScaling::kLinear:
        frequencies_[pair] = stretched;
        break;
      case RopeScaling::kYarn: {
        const double kept = yarn_kept_share(config, index);
        frequencies_[pair] = plain * kept + stretched * (1.0 - kept);
        break;
      }
    }
  }
}

void RopeTable::fill(std::uint64_t position, float* cosines, float* sines) const {
  for (std::size_t pair = 0; pair < frequencies_.size(); ++pair) {
    const double angle = static_cast<double>(position) * frequencies_[pair];
    const SineCosine turned = sine_cosine(angle);
    cosines[pair] = static_cast<float>(turned.cosine * magnitude_);
    sines[pair] = static_cast<float>(turned.sine * magnitude_);
  }
}

float query_factor(const QueryScale& scale, std::uint64_t position) {
  const auto contexts = static_cast<double>(position / scale.context);
  return static_cast<float>(1.0 + double{scale.slope} * natural_log(1.0 + contexts));
}

}  // namespace pagoda::model

#include "kernels/ref/sampling.h"

#include <cmath>
#include <limits>

#include "kernels/exp.h"
#include "kernels/ref/lane_reduction.h"

namespace pagoda::kernels::ref {

float finite_max(const float* x, std::size_t count) {
  float best = x[0];
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::quiet_NaN();
    best = x[i] > best ? x[i] : best;
  }
  return best + 0.0f;
}

float exp_sum(const float* x, std::size_t count, float best) {
  LaneReduction sum;
  for (std::size_t i = 0; i < count; ++i) sum.add(i, exp_fixed(x[i] - best));
  return sum.fold();
}

std::uint64_t sampling_weights(const SamplingWeights& job) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < job.count; ++i) {
    const float share = exp_fixed((job.x[i] - job.best) * job.inverse_temperature);
    const float weight = share < job.min_p ? 0.0f : std::nearbyint(share * kWeightOfBest);
    job.weights[i] = static_cast<std::uint32_t>(weight);
    total += job.weights[i];
  }
  return total;
}

std::uint64_t mass_from(const float* x, const std::uint32_t* weights, std::size_t count,
                        float x_min) {
  std::uint64_t mass = 0;
  for (std::size_t i = 0; i < count; ++i) mass += x[i] >= x_min ? weights[i] : 0;
  return mass;
}

}  // namespace pagoda::kernels::ref

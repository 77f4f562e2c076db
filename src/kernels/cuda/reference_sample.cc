#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "kernels/cuda/reference.h"
#include "kernels/exp.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cuda::reference {
namespace {

std::uint64_t mass_of(const std::vector<std::uint32_t>& weights,
                      const std::vector<std::uint32_t>& tokens) {
  std::uint64_t mass = 0;
  for (const std::uint32_t token : tokens) mass += weights[token];
  return mass;
}

// The id at which the weights of `field`, added up by ascending id, pass `target`.
std::uint32_t find(const std::vector<std::uint32_t>& weights, std::vector<std::uint32_t> field,
                   std::uint64_t target) {
  std::sort(field.begin(), field.end());
  std::size_t i = 0;
  for (; target >= weights[field[i]]; ++i) target -= weights[field[i]];
  return field[i];
}

}  // namespace

std::uint32_t sample(std::span<const float> logits, const GpuSamplingParams& params) {
  for (const float logit : logits) {
    if (!std::isfinite(logit)) return kNotSampled;
  }
  std::vector<std::uint32_t> field(logits.size());
  std::iota(field.begin(), field.end(), 0u);
  std::stable_sort(field.begin(), field.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return logits[a] > logits[b]; });
  if (params.inverse_temperature == 0) return field.front();
  if (params.top_k > 0 && params.top_k < field.size()) field.resize(params.top_k);
  const float best = logits[field.front()];
  std::vector<std::uint32_t> weights(logits.size());
  for (const std::uint32_t token : field) {
    const float share = exp_fixed((logits[token] - best) * params.inverse_temperature);
    const float weight = share < params.min_p ? 0.0f : std::nearbyint(share * kWeightOfBest);
    weights[token] = static_cast<std::uint32_t>(weight);
  }
  const std::uint64_t seed = std::uint64_t{params.seed_high} << 32 | params.seed_low;
  const double head = double{params.top_p} * static_cast<double>(mass_of(weights, field));
  for (std::uint64_t round = 0;; ++round) {
    const double unit = random_unit(seed, round << 32, params.position);
    const double mass = static_cast<double>(mass_of(weights, field));
    const std::uint32_t token = find(weights, field, static_cast<std::uint64_t>(unit * mass));
    field.erase(std::find(field.begin(), field.end(), token), field.end());
    if (static_cast<double>(mass_of(weights, field)) < head) return token;
  }
}

}  // namespace pagoda::kernels::cuda::reference

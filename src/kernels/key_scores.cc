#include <bit>
#include <cmath>

#include "kernels/ops.h"

namespace pagoda::kernels {

void observe_weights(const KernelSet& kernels, std::size_t keys, const float* sink, float* scores,
                     std::uint32_t* weights, std::uint64_t* sums) {
  std::size_t count = keys;
  if (sink != nullptr) scores[count++] = *sink;
  const float best = kernels.finite_max(scores, count);
  if (!(best == best)) return;  // the row's logits are no numbers either
  const std::uint64_t sum = kernels.sampling_weights({.x = scores,
                                                      .count = count,
                                                      .best = best,
                                                      .inverse_temperature = 1,
                                                      .min_p = 0,
                                                      .weights = weights});
  // The factor is at most 2^31, and a product with a weight at most 2^61.
  const auto bits = static_cast<int>(std::bit_width(sum));
  const auto factor =
      static_cast<std::uint32_t>(std::ldexp(kAttentionUnit, bits) / static_cast<double>(sum));
  for (std::size_t i = 0; i < keys; ++i) sums[i] += (std::uint64_t{weights[i]} * factor) >> bits;
}

}  // namespace pagoda::kernels

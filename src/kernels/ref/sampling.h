// The operations of sampling on a row of logits, in plain C++: see kernels/ops.h for the contracts.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::ref {

float finite_max(const float* x, std::size_t count);
float exp_sum(const float* x, std::size_t count, float best);
std::uint64_t sampling_weights(const SamplingWeights& job);
std::uint64_t mass_from(const float* x, const std::uint32_t* weights, std::size_t count,
                        float x_min);

}  // namespace pagoda::kernels::ref

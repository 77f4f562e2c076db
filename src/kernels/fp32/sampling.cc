// The operations of sampling on a row of logits.
#include <algorithm>

#include "kernels/fp32/f32x8.h"
#include "kernels/fp32/kernels.h"
#include "kernels/fp32/u32x8.h"
#include "kernels/ref/sampling.h"

namespace pagoda::kernels::fp32 {
namespace {

constexpr std::size_t kStride = 2 * kLanes;

F32x8x2 load_stride(const float* p) { return {load(p), load(p + kLanes)}; }

template <bool kHasShareMin>
std::uint64_t sampling_weights_row(const SamplingWeights& job) {
  const std::size_t count = job.count;
  const float* const x = job.x;
  std::uint32_t* const weights = job.weights;
  const float weight_min = job.min_p * kWeightOfBest;
  const F32x8x2 best = splat_like(F32x8x2{}, job.best);
  const F32x8x2 inverse_temperature = splat_like(F32x8x2{}, job.inverse_temperature);
  // Values below this weigh 0 as well, and exp_within() needs the bound.
  const F32x8x2 lowest = splat_like(F32x8x2{}, exp_steps::kLowest);
  MassLanes mass;
  std::size_t i = 0;
  for (; i + kStride <= count; i += kStride) {
    const F32x8x2 distance = (load_stride(x + i) - best) * inverse_temperature;
    F32x8x2 scaled = exp_within(max(distance, lowest), kWeightPower);
    if constexpr (kHasShareMin) {
      scaled.low = zero_where_below(scaled.low, weight_min, scaled.low);
      scaled.high = zero_where_below(scaled.high, weight_min, scaled.high);
    }
    const U32x8 low = to_nearest(scaled.low);
    const U32x8 high = to_nearest(scaled.high);
    store(weights + i, low);
    store(weights + i + kLanes, high);
    mass.add(low);
    mass.add(high);
  }
  SamplingWeights tail = job;
  tail.x += i;
  tail.weights += i;
  tail.count -= i;
  return mass.fold() + ref::sampling_weights(tail);
}

}  // namespace

float finite_max(const float* x, std::size_t count) {
  constexpr std::size_t kChains = 4;  // hide the latency of the fused multiply-add
  if (count < kChains * kLanes) return ref::finite_max(x, count);
  F32x8 best[kChains];
  F32x8 taint[kChains];  // 0 * x added up: 0, or NaN once a value was not finite
  for (std::size_t c = 0; c < kChains; ++c) {
    best[c] = broadcast(x[0]);
    taint[c] = broadcast(0.0f);
  }
  std::size_t i = 0;
  for (; i + kChains * kLanes <= count; i += kChains * kLanes) {
    PAGODA_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) {
      const F32x8 value = load(x + i + c * kLanes);
      best[c] = max(best[c], value);
      taint[c] = fma(value, broadcast(0.0f), taint[c]);
    }
  }
  float lanes[kLanes];
  store(lanes, max(max(best[0], best[1]), max(best[2], best[3])));
  float highest = *std::max_element(lanes, lanes + kLanes);
  float tainted = fold_sum((taint[0] + taint[1]) + (taint[2] + taint[3]));
  for (; i < count; ++i) {
    highest = std::max(highest, x[i]);
    tainted = std::fma(x[i], 0.0f, tainted);
  }
  return highest + tainted;
}

float exp_sum(const float* x, std::size_t count, float best) {
  const F32x8x2 lowest = splat_like(F32x8x2{}, exp_steps::kLowest);
  F32x8 lanes = broadcast(0.0f);
  std::size_t i = 0;
  for (; i + kStride <= count; i += kStride) {
    const F32x8x2 distance = load_stride(x + i) - splat_like(F32x8x2{}, best);
    const F32x8x2 e = exp_within(max(distance, lowest), 0);
    lanes = lanes + zero_where_below(distance.low, exp_steps::kLowest, e.low);
    lanes = lanes + zero_where_below(distance.high, exp_steps::kLowest, e.high);
  }
  float tail[kLanes];
  store(tail, lanes);
  for (std::size_t lane = 0; i + lane < count; ++lane) {
    tail[lane % kLanes] += kernels::exp_fixed(x[i + lane] - best);
  }
  return fold_sum(load(tail));
}

std::uint64_t sampling_weights(const SamplingWeights& job) {
  return job.min_p > 0.0f ? sampling_weights_row<true>(job) : sampling_weights_row<false>(job);
}

std::uint64_t mass_from(const float* x, const std::uint32_t* weights, std::size_t count,
                        float x_min) {
  MassLanes mass;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    mass.add(zero_where_below(load(x + i), x_min, load(weights + i)));
  }
  return mass.fold() + ref::mass_from(x + i, weights + i, count - i, x_min);
}

}  // namespace pagoda::kernels::fp32

// What sampling asks of a row of logits.
#include <algorithm>

#include "kernels/cpu/f32x8.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/u32x8.h"
#include "kernels/ref/sampling.h"

namespace pagoda::kernels::cpu {

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
  F32x8 lanes = broadcast(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    lanes = lanes + exp_fixed(load(x + i) - broadcast(best));
  }
  float tail[kLanes];
  store(tail, lanes);
  for (std::size_t lane = 0; i + lane < count; ++lane) {
    tail[lane] += kernels::exp_fixed(x[i + lane] - best);
  }
  return fold_sum(load(tail));
}

std::uint64_t weigh(const Weighing& job) {
  constexpr std::size_t kStride = 2 * kLanes;
  const Weighing j = job;  // a copy that no store to the weights can alias
  const float weight_min = j.share_min * kWeightOfBest;
  // Values from here down weigh nothing, and exp_within needs them no lower.
  const F32x16 lowest = splat<F32x16>(exp_steps::kLowest);
  MassLanes mass;
  std::size_t i = 0;
  for (; i + kStride <= j.count; i += kStride) {
    const F32x16 x = {load(j.x + i), load(j.x + i + kLanes)};
    const F32x16 distance = (x - splat<F32x16>(j.best)) * splat<F32x16>(j.sharpness);
    const F32x16 scaled = exp_within(max(distance, lowest), kWeightPower);
    const U32x8 low = to_nearest(zero_where_below(scaled.low, weight_min, scaled.low));
    const U32x8 high = to_nearest(zero_where_below(scaled.high, weight_min, scaled.high));
    store(j.weights + i, low);
    store(j.weights + i + kLanes, high);
    mass.add(low);
    mass.add(high);
  }
  Weighing tail = j;
  tail.x += i;
  tail.weights += i;
  tail.count -= i;
  return mass.fold() + ref::weigh(tail);
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

}  // namespace pagoda::kernels::cpu

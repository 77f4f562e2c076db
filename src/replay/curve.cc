#include "replay/curve.h"

namespace pagoda::replay {

std::optional<double> SampledCurve::hit_rate(std::string_view policy, std::size_t capacity) const {
  for (const kv::PolicyRates& rates : snapshots[capacity].by_policy()) {
    if (rates.policy == policy) return rates.same;
  }
  return std::nullopt;
}

SampledCurve sample_curve(const Trace& trace, const std::vector<std::uint64_t>& capacity_blocks,
                          std::uint64_t block_tokens, std::uint64_t unique_blocks) {
  SampledCurve sampled;
  for (const std::uint64_t blocks : capacity_blocks) {
    kv::CurveStats& stats = sampled.snapshots.emplace_back();
    run_cache(trace, {&kv::lru_policy(), blocks, block_tokens, &stats}, unique_blocks, {});
  }
  return sampled;
}

}  // namespace pagoda::replay

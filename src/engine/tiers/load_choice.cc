#include "engine/tiers/load_choice.h"

#include <algorithm>

namespace pagoda::engine {
namespace {

// A silent tier may be slow, or gone: a load waits for this share of the time that computing would
// take, but at least kPatienceSecondsMin, beyond kLatenessMax times what the pages on their way
// should need.
constexpr double kPatienceShare = 0.02;
constexpr double kPatienceSecondsMin = 0.005;
constexpr double kLatenessMax = 4;

}  // namespace

LoadDecision load_or_recompute(LoadMode mode, const LoadEstimate& estimate) {
  const bool knows_model = estimate.tokens_per_second.has_value();
  const double compute_s =
      knows_model ? static_cast<double>(estimate.tokens_left) / *estimate.tokens_per_second : 0;
  if (mode == LoadMode::kAlways) return {LoadChoice::kWait, compute_s};
  // A request that computes its first chunk shows how fast the model is.
  if (!knows_model) return {LoadChoice::kCompute, 0};
  double patience_s = std::max(kPatienceSecondsMin, kPatienceShare * compute_s);
  if (!estimate.bytes_per_second) {
    if (estimate.silent_s >= patience_s) return {LoadChoice::kCompute, 0};
    return {LoadChoice::kWait, 0, patience_s - estimate.silent_s};
  }
  patience_s +=
      kLatenessMax * static_cast<double>(estimate.bytes_running) / *estimate.bytes_per_second;
  const double load_s = static_cast<double>(estimate.bytes_left) / *estimate.bytes_per_second;
  if (load_s >= compute_s || estimate.silent_s >= patience_s) return {LoadChoice::kCompute, 0};
  return {LoadChoice::kWait, compute_s - load_s, patience_s - estimate.silent_s};
}

}  // namespace pagoda::engine

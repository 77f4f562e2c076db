// A trace through a running cache that keeps its live curve: what it would have said of its own
// size under every policy, beside what they give.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kv/curve.h"
#include "replay/run.h"
#include "replay/trace.h"

namespace pagoda::replay {

// The live curves of lru caches, one of each capacity, after the whole trace.
struct SampledCurve {
  std::vector<kv::CurveStats> snapshots;  // [capacity]

  // Nothing for a policy of which the curve cannot tell.
  std::optional<double> hit_rate(std::string_view policy, std::size_t capacity) const;
};

SampledCurve sample_curve(const Trace& trace, const std::vector<std::uint64_t>& capacity_blocks,
                          std::uint64_t block_tokens, std::uint64_t unique_blocks);

}  // namespace pagoda::replay

// A trace through the live hit-rate curve alone: what a running cache would have said of other
// sizes, beside what they give.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cli/replay_trace.h"

namespace pagoda::cli {

struct SampledCurve {
  std::vector<double> blocks_hit_rates;  // [capacity], of lru
  double sampling_rate = 1;              // the share of blocks that was followed in the end
};

SampledCurve sample_curve(const Trace& trace, std::span<const std::uint64_t> capacity_blocks);

}  // namespace pagoda::cli

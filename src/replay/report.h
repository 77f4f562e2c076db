// Reports the hit rates of a replay, as a table for people and as JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/capacity.h"
#include "replay/curve.h"
#include "replay/hits.h"

namespace pagoda::replay {

struct PolicyCurve {
  std::string policy;
  std::vector<HitCounts> hits;  // [capacity]
  double seconds = 0;           // in the cache, all capacities together; 0: it was not run there
};

struct TraceReport {
  std::string trace;
  std::uint64_t requests = 0;
  std::uint64_t unique_blocks = 0;
  std::uint64_t lines_malformed = 0;
  std::vector<std::uint64_t> capacity_blocks;  // [capacity]
  std::vector<PolicyCurve> curves;             // in the order asked
  std::optional<PolicyCurve> beside;           // Belady, where it was not asked for
  std::optional<SampledCurve> sampled;         // where it was asked for
  HitCounts infinite;
};

std::string replay_text(const TraceReport& report, std::span<const Capacity> capacities,
                        std::uint64_t block_tokens);

// One value for all traces. Results carry their trace when there are several.
std::string replay_json(std::span<const TraceReport> reports, std::span<const Capacity> capacities,
                        std::uint64_t block_tokens);

}  // namespace pagoda::replay

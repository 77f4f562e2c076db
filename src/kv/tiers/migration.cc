#include "kv/tiers/migration.h"

#include <algorithm>
#include <cmath>

namespace pagoda::kv {

std::vector<BlockId> plan_migration(const TierPressure& pressure,
                                    std::span<const MigrationCandidate> candidates, Tick now,
                                    const MigrationOptions& options) {
  std::vector<BlockId> plan;
  const auto wanted = static_cast<std::uint64_t>(
      std::ceil(options.free_share_wanted * static_cast<double>(pressure.blocks)));
  if (pressure.blocks_free >= wanted || pressure.slots == 0) return plan;
  // What stands first in line to be evicted once the missing blocks are asked for.
  const std::uint64_t endangered = wanted - pressure.blocks_free;
  const std::uint64_t room =
      options.moves_running_max - std::min(options.moves_running_max, pressure.moves_running);
  std::uint64_t seen = 0;
  for (const MigrationCandidate& candidate : candidates) {
    if (seen++ == endangered || plan.size() == room) break;
    if (candidate.in_tier || now - candidate.stats.last_use < options.idle_ticks_min) continue;
    plan.push_back(candidate.block);
  }
  return plan;
}

}  // namespace pagoda::kv

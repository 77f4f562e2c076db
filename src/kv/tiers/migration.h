// What should be copied out before it is lost: a pure function from pressure and statistics to a
// plan. It moves nothing and knows no tier's insides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/evict/policy.h"
#include "kv/ids.h"

namespace pagoda::kv {

struct TierPressure {
  std::uint64_t blocks = 0;  // of the pool
  std::uint64_t blocks_free = 0;
  std::uint64_t slots = 0;  // of the tier
  std::uint64_t moves_running = 0;
};

// A page that may be evicted next, soonest first.
struct MigrationCandidate {
  BlockId block;
  BlockStats stats;
  bool in_tier = false;  // a copy is there already
};

struct MigrationOptions {
  // Pages are copied out while less than this share of the pool is free.
  double free_share_wanted = 0.125;
  std::uint64_t moves_running_max = 16;
  // Pages used within this many ticks are still hot: they wait.
  Tick idle_ticks_min = 0;
};

// The blocks to copy out, soonest to be evicted first.
std::vector<BlockId> plan_migration(const TierPressure& pressure,
                                    std::span<const MigrationCandidate> candidates, Tick now,
                                    const MigrationOptions& options);

}  // namespace pagoda::kv

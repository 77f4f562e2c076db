// Trace files through fleets, one after the other, and reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kv/evict/policy.h"
#include "replay/capacity.h"
#include "replay/fleet/fleet_options.h"
#include "replay/replay_files.h"

namespace pagoda::replay {

// Every combination of these is a fleet.
struct FleetQuestion {
  std::vector<std::uint32_t> servers;
  std::vector<RouterKind> routers;
  std::vector<const kv::EvictionPolicy*> policies;
  std::vector<Capacity> capacities;  // of each server
  std::vector<FleetTier> tiers;
  FleetRun base;  // what all have
};

// Reads the files, then prints what each fleet makes of them to stdout. The error says what went
// wrong besides, such as lines that were skipped.
Status fleet_files(const std::vector<std::string>& paths, const FleetQuestion& question,
                   const ReplayOutput& output);

}  // namespace pagoda::replay

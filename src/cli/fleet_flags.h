// The flags of pagoda replay that make one cache a fleet of servers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "replay/fleet/fleet_files.h"

namespace pagoda::cli {

struct FleetFlags {
  std::vector<std::uint32_t> servers;  // empty: no fleet
  std::string routers = "round-robin";
  std::vector<std::string> tiers;
  replay::FleetRun base;
  double load = 0;  // 0: the trace's speed
  // Those that say nothing of one cache.
  std::vector<std::pair<std::string, Flag>> of_several;
};

void add_fleet_options(const CommandSpec& command, FleetFlags& flags);

// An error for a flag that was typed, and not taken from the environment, without --servers.
Status check_no_fleet(const FleetFlags& flags);

// The question that the flags ask, but for policies and capacities.
Result<replay::FleetQuestion> understand_fleet(const FleetFlags& flags, std::uint64_t block_tokens);

}  // namespace pagoda::cli

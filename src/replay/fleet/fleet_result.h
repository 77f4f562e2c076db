// A FleetResult says what became of a trace in a fleet.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "replay/fleet/fleet_options.h"
#include "replay/hits.h"

namespace pagoda::replay {

// Tokens of prompts by where they came from: all together they are HitCounts::tokens.
struct TokenSources {
  std::uint64_t memory = 0;                           // of the server that answered
  std::array<std::uint64_t, kFleetTiers> tiers = {};  // [FleetTierKind]
  std::uint64_t computed = 0;

  std::uint64_t all() const {
    std::uint64_t sum = memory + computed;
    for (const std::uint64_t tokens : tiers) sum += tokens;
    return sum;
  }
};

struct FleetTraffic {
  std::uint64_t blocks_read = 0;
  std::uint64_t blocks_written = 0;
  std::uint64_t blocks_left_out = 0;  // not written: too much waited for the link
};

struct ServerLoad {
  std::uint64_t requests = 0;
  std::uint64_t tokens_computed = 0;
  std::int64_t busy_ns = 0;  // computing prompts
};

struct FleetResult {
  HitCounts hits;  // found anywhere
  TokenSources sources;
  std::array<FleetTraffic, kFleetTiers> traffic = {};  // [FleetTierKind]
  std::vector<ServerLoad> servers;
  std::vector<std::int64_t> ttft_ns;  // [request of the trace]
  std::int64_t span_ns = 0;           // from the first arrival to the last first token
  double speed = 1;                   // of the trace's times; of a load, what it came to
};

}  // namespace pagoda::replay

// A fleet: servers with a cache each behind one router, and the tiers that they have or share.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kv/evict/policy.h"
#include "replay/capacity.h"

namespace pagoda::replay {

enum class RouterKind : std::uint8_t {
  kRoundRobin,
  kSticky,      // by a consistent hash of the conversation or of the first block
  kCacheAware,  // as sglang-router guesses what each server has
  kExact        // by what each server has and has to do
};
// In the order of RouterKind.
inline constexpr std::array<std::string_view, 4> kRouterNames = {"round-robin", "sticky",
                                                                 "cache-aware", "exact"};
inline std::string_view router_name(RouterKind kind) {
  return kRouterNames[static_cast<std::size_t>(kind)];
}

enum class FleetTierKind : std::uint8_t {
  kHost,    // main memory of each server
  kDisk,    // of each server
  kShared,  // one store that all servers reach over the network
  kPeer     // the caches of the other servers, over the network
};
// In the order of FleetTierKind.
inline constexpr std::array<std::string_view, 4> kFleetTierNames = {"host", "disk", "shared",
                                                                    "peer"};
inline constexpr std::size_t kFleetTiers = kFleetTierNames.size();
inline std::string_view fleet_tier_name(FleetTierKind kind) {
  return kFleetTierNames[static_cast<std::size_t>(kind)];
}

struct FleetTier {
  FleetTierKind kind = FleetTierKind::kHost;
  Capacity capacity = {};  // of each server's, or of the shared store; peers have none
};

// "host:64GiB", "shared:200%", "peer": a kind and how much it holds. block_bytes as
// parse_capacities() takes it.
Result<FleetTier> parse_fleet_tier(std::string_view text, std::uint64_t block_bytes);

// Tokens and bytes are a second's. docs/guide/replay.md says where the defaults were measured.
struct FleetCosts {
  double prefill_tokens = 35'000;     // of one server
  double decode_tokens = 150;         // of one request
  double host_bytes = 52e9;           // between main memory and the cache, each way
  double disk_bytes = 2e9;            // likewise
  double network_bytes = 12.5e9;      // into a server and out of it, each
  double store_bytes = 0;             // into the shared store and out of it; 0: no bound
  double network_latency_s = 0.0005;  // of a read over the network
  std::uint64_t bytes_per_token = 131'072;
};

struct RouterOptions {
  bool sticky_by_first_block = false;  // otherwise by conversation
  // sglang-router 0.3.2's.
  double cache_threshold = 0.3;
  std::uint32_t balance_abs_threshold = 64;
  double balance_rel_threshold = 1.5;
  // A server's part of its tree. There it is 2^26 characters; four of them are a token here.
  std::uint64_t tree_tokens_max = std::uint64_t{1} << 24;
};

// When requests come.
struct FleetArrivals {
  double speed = 1;            // of the trace's own times
  std::optional<double> load;  // instead: the speed at which prompts, none of their tokens cached,
                               // would take this share of all servers' time
  bool poisson = false;        // at random times, as many a second as otherwise, by the seed
};

struct FleetRun {
  std::uint32_t servers = 1;
  RouterKind router = RouterKind::kRoundRobin;
  const kv::EvictionPolicy* policy = &kv::lru_policy();
  std::uint64_t capacity_blocks = 1;  // of each server
  std::uint64_t block_tokens = 512;
  std::span<const FleetTier> tiers = {};  // each kind once; in the order in which they are asked
  FleetCosts costs = {};
  RouterOptions routing = {};
  FleetArrivals arrivals = {};
  std::uint64_t seed = 0;

  std::uint64_t block_bytes() const { return costs.bytes_per_token * block_tokens; }
};

inline constexpr std::uint32_t kFleetServersMax = 4096;
// The limit of all servers' caches together: a block takes about 40 bytes of our own memory.
inline constexpr std::uint64_t kFleetBlocksMax = std::uint64_t{1} << 25;

}  // namespace pagoda::replay

// A server of a fleet: its cache, its own tiers, its links and what it has to do.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "replay/fleet/block_lru.h"
#include "replay/fleet/fleet_options.h"
#include "replay/fleet/fleet_result.h"
#include "replay/fleet/transfer_path.h"
#include "replay/trace_cache.h"

namespace pagoda::replay {

// A link each way.
struct LinkPair {
  TransferLink in;
  TransferLink out;

  explicit LinkPair(double bytes_per_second)
      : in{.bytes_per_second = bytes_per_second}, out{.bytes_per_second = bytes_per_second} {}
};

// Links of host and disk lead `in` towards the cache.
struct FleetServer {
  FleetServer(const Trace& trace, const CacheRun& run, std::uint64_t unique_blocks,
              const FleetCosts& costs)
      : cache(trace, run, unique_blocks),
        host_link(costs.host_bytes),
        disk_link(costs.disk_bytes),
        network(costs.network_bytes) {}

  TraceCache cache;
  std::optional<BlockLru> host;
  std::optional<BlockLru> disk;
  LinkPair host_link;
  LinkPair disk_link;
  LinkPair network;

  // Requests whose pages are there, in the order in which they are computed, one at a time.
  std::deque<std::uint32_t> queue;
  std::optional<std::uint32_t> computing;
  std::int64_t computed_ns = 0;  // when that one will be
  std::int64_t waiting_ns = 0;   // of computing, as it is expected of those that have not begun
  std::uint32_t in_flight = 0;   // from their arrival to their last token
  ServerLoad load;

  // Until what it was given is computed.
  std::int64_t backlog_ns(std::int64_t now_ns) const {
    return waiting_ns + (computing ? computed_ns - now_ns : 0);
  }
};

}  // namespace pagoda::replay

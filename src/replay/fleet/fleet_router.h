// Which server a request goes to: what routers know of it, of the servers and of what they sent
// where before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "replay/fleet/fleet_options.h"

namespace pagoda::replay {

struct RoutedRequest {
  std::span<const std::uint32_t> blocks;  // BlockNumbers::of
  std::uint64_t tokens = 0;               // of the input
  std::uint32_t conversation = 0;
};

// Routers may ask this of the servers; they know only how many requests are in flight.
class FleetState {
 public:
  virtual ~FleetState() = default;

  virtual std::uint32_t in_flight(std::uint32_t server) = 0;
  // When the first token of the request at hand would come, from now, by the server's cache, tiers
  // and queue.
  virtual std::int64_t expected_ttft_ns(std::uint32_t server) = 0;
  virtual std::uint64_t tokens_computed(std::uint32_t server) = 0;
};

class FleetRouter {
 public:
  virtual ~FleetRouter() = default;
  virtual std::uint32_t choose(const RoutedRequest& request, FleetState& fleet) = 0;
};

std::unique_ptr<FleetRouter> make_fleet_router(const FleetRun& run);

}  // namespace pagoda::replay

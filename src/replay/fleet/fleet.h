// A trace through a fleet, in simulated time.
//
// A request goes to a server as it arrives. What tiers have behind the server's own cache is read
// where that ends before the server would have computed it; then the request waits for its turn.
// A server computes one prompt after the other, at one rate, and holds a prompt's blocks until the
// last token of the answer, which comes at the rate of one request. A request that finds too many
// blocks held waits, and those behind it. What was computed is written through to the tiers.
//
// Times are whole nanoseconds and equal times have an order, so that a run is a function of the
// trace and the FleetRun.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "replay/block_numbers.h"
#include "replay/fleet/fleet_options.h"
#include "replay/fleet/fleet_result.h"
#include "replay/trace.h"

namespace pagoda::replay {

// Each server serves its requests in order, as run_cache() does where nothing is held and no tier
// is asked. on_progress(requests that came so far) may be empty.
Result<FleetResult> run_fleet(const Trace& trace, const BlockNumbers& numbers, const FleetRun& run,
                              const std::function<void(std::uint64_t requests)>& on_progress);

}  // namespace pagoda::replay

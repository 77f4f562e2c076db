// When the requests of a trace come to a fleet.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "replay/fleet/fleet_options.h"
#include "replay/trace.h"

namespace pagoda::replay {

struct FleetArrival {
  std::uint32_t request = 0;  // of the trace
  std::int64_t time_ns = 0;   // since the first
};

struct FleetSchedule {
  std::vector<FleetArrival> arrivals;  // earliest first; of equals in the order of the trace
  double speed = 1;                    // of the trace's times
};

// An error where the trace's times cannot be scaled: all are the same.
Result<FleetSchedule> schedule_arrivals(const Trace& trace, const FleetRun& run);

}  // namespace pagoda::replay

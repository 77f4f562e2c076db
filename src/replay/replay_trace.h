// A trace through caches of several policies and sizes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kv/evict/policy.h"
#include "replay/capacity.h"
#include "replay/report.h"
#include "replay/trace.h"
#include "terminal/plot.h"

namespace pagoda::replay {

struct ReplayQuestion {
  std::vector<const kv::EvictionPolicy*> policies;  // nullptr: Belady
  std::vector<Capacity> capacities;
  std::uint64_t block_tokens = 512;
  bool curve = false;  // the live curve's as well
};

// "belady" where there is no policy.
std::string_view policy_name(const kv::EvictionPolicy* policy);

// Each cache starts empty. Belady is run beside the policies where it is none of them.
// on_progress(touches of blocks so far, of all) may be empty.
TraceReport replay_trace(
    const Trace& trace, const ReplayQuestion& question, const Clock& clock,
    const std::function<void(std::uint64_t touches, std::uint64_t total)>& on_progress);

// The report's curves as a plot.
terminal::PlotPanel plot_panel(const TraceReport& report, std::span<const Capacity> capacities);

}  // namespace pagoda::replay

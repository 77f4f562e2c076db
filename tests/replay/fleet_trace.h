// Traces and fleets that tests make up: blocks of one token and one byte, times in milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "replay/fleet/fleet.h"
#include "replay/reference_fleet.h"
#include "replay/trace.h"

namespace pagoda::replay {

inline Trace trace_of(const std::vector<PlainRequest>& requests) {
  Trace trace;
  trace.name = "made";
  for (const PlainRequest& request : requests) {
    trace.requests.push_back({.first = trace.ids.size(),
                              .blocks = request.ids.size(),
                              .input_tokens = request.ids.size(),
                              .output_tokens = static_cast<std::uint64_t>(request.answer_ms) + 1,
                              .timestamp_ms = static_cast<double>(request.at_ms)});
    for (const std::uint32_t id : request.ids) trace.ids.emplace_back(id);
    trace.ids.emplace_back(UINT32_MAX);
  }
  return trace;
}

// One token, one byte and one millisecond are each other's units.
inline FleetRun milliseconds(std::int64_t compute_ms) {
  FleetRun run;
  run.block_tokens = 1;
  run.costs.bytes_per_token = 1;
  run.costs.prefill_tokens = 1000.0 / static_cast<double>(compute_ms);
  run.costs.decode_tokens = 1000;
  run.costs.network_latency_s = 0;
  return run;
}

// Conversations that grow by turns behind one of a few beginnings, at random times.
inline std::vector<PlainRequest> random_requests(std::uint64_t seed, std::size_t count,
                                                 std::uint64_t gap_ms) {
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t n) { return random_bits(seed, 1, draws++) % n; };
  std::vector<Ids> open(1 + below(6));
  std::uint32_t fresh = 100;
  std::int64_t at = 0;
  std::vector<PlainRequest> requests;
  for (std::size_t i = 0; i < count; ++i) {
    Ids& ids = open[below(open.size())];
    if (ids.empty() || ids.size() > 9 || below(5) == 0) {
      ids = {static_cast<std::uint32_t>(below(3))};
    }
    for (std::uint64_t more = 1 + below(3); more > 0; --more) ids.push_back(fresh++);
    at += static_cast<std::int64_t>(below(gap_ms + 1));
    requests.push_back(
        {.at_ms = at, .ids = ids, .answer_ms = static_cast<std::int64_t>(below(30))});
  }
  return requests;
}

inline FleetResult run_made(const Trace& trace, const FleetRun& run) {
  const BlockNumbers numbers(trace);
  return run_fleet(trace, numbers, run, {}).value();
}

}  // namespace pagoda::replay

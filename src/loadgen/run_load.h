// Sends a workload to a server and gathers what comes back: one thread, any number of connections.
//
//   workload -> due? -> slot free? -> idle connection or a new one -> write -> read -> outcome
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "loadgen/outcome.h"
#include "loadgen/target.h"
#include "loadgen/workload.h"

namespace pagoda::loadgen {

struct LoadOptions {
  std::uint32_t concurrency_max = 0;  // requests in flight; what is due then waits. 0: any number
  bool closed_loop = false;           // a request is due when its slot is free, not before
  double duration_s = 0;              // nothing is sent after. 0: until the workload ends
  double timeout_s = 600;             // of one request, from when it is sent
};

struct LoadResult {
  std::vector<Outcome> outcomes;  // in the order of their ends
  std::vector<float> itl_s;       // between pieces of text, of all requests
  std::uint64_t connections = 0;  // that were opened
  std::uint64_t in_flight_peak = 0;
  double seconds = 0;              // from the start to the last end
  bool stopped = false;            // asked to, before it was over
  std::string first_failure = {};  // in words, of the first request that failed
};

struct LoadEvents {
  std::function<bool()> stopped;  // asked now and then
  std::function<void(std::uint64_t ended, double seconds)> on_progress;
};

// An error when nothing can be sent at all: the host is not known.
Result<LoadResult> run_load(const Target& target, const CompletionForm& form, Workload& workload,
                            const LoadOptions& options, const LoadEvents& events,
                            const Clock& clock);

// One request, waited for; what is no reply is an error.
struct WholeReply {
  int status = 0;
  std::string body;
};
Result<WholeReply> fetch(const Target& target, const std::string& request, double timeout_s);

}  // namespace pagoda::loadgen

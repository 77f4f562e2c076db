#include "replay/fleet/arrival_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/elementary.h"
#include "base/random.h"

namespace pagoda::replay {
namespace {

constexpr std::uint64_t kPoissonStream = 0x706f6973736f6e;  // apart from those of routers
constexpr double kTimeMaxNs = 1e18;                         // 31 years

// Seconds that one server would compute for, if nothing were cached.
double work_s(const Trace& trace, const FleetRun& run) {
  double tokens = 0;
  for (const TraceRequest& request : trace.requests) {
    const std::uint64_t known = request.blocks * run.block_tokens;
    tokens +=
        static_cast<double>(std::max<std::uint64_t>(std::min(request.input_tokens, known), 1));
  }
  return tokens / run.costs.prefill_tokens;
}

}  // namespace

Result<FleetSchedule> schedule_arrivals(const Trace& trace, const FleetRun& run) {
  FleetSchedule schedule = {.arrivals = {}, .speed = run.arrivals.speed};
  std::vector<std::uint32_t> order(trace.requests.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto time_ms = [&](std::uint32_t request) { return trace.requests[request].timestamp_ms; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return time_ms(a) < time_ms(b); });
  if (order.empty()) return schedule;
  const double first_ms = time_ms(order.front());
  const double span_s = (time_ms(order.back()) - first_ms) / 1000;
  const bool scaled = run.arrivals.load.has_value();
  if (span_s <= 0 && order.size() > 1 && (scaled || run.arrivals.poisson)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`{}`: all requests of '{}' have one timestamp, so that there is no "
                             "rate of theirs to scale",
                             scaled ? "load" : "arrivals", trace.name)};
  }
  if (scaled) schedule.speed = span_s * run.servers * *run.arrivals.load / work_s(trace, run);
  const double mean_s = span_s / schedule.speed / static_cast<double>(order.size());
  double drawn_s = 0;
  schedule.arrivals.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    double at_s = (time_ms(order[i]) - first_ms) / 1000 / schedule.speed;
    if (run.arrivals.poisson) {
      // 1 - u is in (0, 1].
      if (i > 0) drawn_s -= mean_s * natural_log(1 - random_unit(run.seed, kPoissonStream, i));
      at_s = drawn_s;
    }
    schedule.arrivals.push_back(
        {.request = order[i],
         .time_ns = static_cast<std::int64_t>(std::llround(std::min(at_s * 1e9, kTimeMaxNs)))});
  }
  return schedule;
}

}  // namespace pagoda::replay

// Fleets side by side: a table for people, JSON for programs, curves over the number of servers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/fleet/fleet_options.h"
#include "replay/fleet/fleet_result.h"
#include "terminal/plot.h"

namespace pagoda::replay {

// Times to the first token, by nearest rank.
struct TtftSummary {
  double mean_s = 0;
  double p50_s = 0;
  double p90_s = 0;
  double p99_s = 0;
  double max_s = 0;
};
TtftSummary summarise_ttft(std::vector<std::int64_t> ttft_ns);

// Servers beside each other.
struct FleetBalance {
  double busy_mean = 0;  // of the span, computing prompts
  double busy_max = 0;
  double tokens_max_over_mean = 1;  // computed: 1 is even
  double requests_max_over_mean = 1;
};
FleetBalance summarise_balance(const FleetResult& result);

struct FleetRow {
  FleetRun run;
  std::string capacity;  // as written
  FleetResult result;    // without ttft_ns
  TtftSummary ttft;
  FleetBalance balance;
};

struct FleetReport {
  std::string trace;
  std::uint64_t requests = 0;
  std::uint64_t blocks = 0;
  std::uint64_t unique_blocks = 0;
  std::uint64_t lines_malformed = 0;
  std::vector<FleetRow> rows;
};

std::string fleet_text(const FleetReport& report);
// One value for all traces. Results carry their trace when there are several.
std::string fleet_json(std::span<const FleetReport> reports);

// A panel of token hit rates and one of TTFT (p90), over servers; a line for each router, and for
// each capacity and policy of it where there are several.
std::vector<terminal::PlotPanel> fleet_panels(const FleetReport& report);

}  // namespace pagoda::replay

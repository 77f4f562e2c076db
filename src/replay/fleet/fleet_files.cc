#include "replay/fleet/fleet_files.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "replay/block_numbers.h"
#include "replay/fleet/fleet.h"
#include "replay/fleet/fleet_report.h"
#include "replay/trace_files.h"
#include "terminal/plot.h"
#include "terminal/progress_bar.h"

namespace pagoda::replay {
namespace {

// All fleets of a question for a trace, in the order in which they are reported.
std::vector<FleetRow> rows_of(const FleetQuestion& question, std::uint64_t unique_blocks) {
  std::vector<FleetRow> rows;
  for (const kv::EvictionPolicy* const policy : question.policies) {
    for (const Capacity& capacity : question.capacities) {
      for (const std::uint32_t servers : question.servers) {
        for (const RouterKind router : question.routers) {
          FleetRow& row = rows.emplace_back();
          row.run = question.base;
          row.run.servers = servers;
          row.run.router = router;
          row.run.policy = policy;
          row.run.capacity_blocks = capacity.blocks(unique_blocks);
          row.run.tiers = question.tiers;
          row.capacity = capacity.text;
        }
      }
    }
  }
  return rows;
}

Result<FleetReport> fleet_report(const Trace& trace, const FleetQuestion& question,
                                 const Clock& clock) {
  const BlockNumbers numbers(trace);
  FleetReport report = {.trace = trace.name,
                        .requests = trace.requests.size(),
                        .blocks = trace.touches(),
                        .unique_blocks = numbers.unique(),
                        .lines_malformed = trace.lines_malformed,
                        .rows = rows_of(question, numbers.unique())};
  terminal::ProgressBar bar(fmt::format("replaying {}", trace.name), "requests", clock);
  const std::uint64_t total = trace.requests.size() * report.rows.size();
  std::uint64_t before = 0;
  for (FleetRow& row : report.rows) {
    ASSIGN_OR_RETURN(row.result, run_fleet(trace, numbers, row.run, [&](std::uint64_t requests) {
                       bar.show(before + requests, total);
                     }));
    before += trace.requests.size();
    row.ttft = summarise_ttft(std::exchange(row.result.ttft_ns, {}));
    row.balance = summarise_balance(row.result);
  }
  return report;
}

}  // namespace

Status fleet_files(const std::vector<std::string>& paths, const FleetQuestion& question,
                   const ReplayOutput& output) {
  const SteadyClock clock;
  ASSIGN_OR_RETURN(const std::vector<Trace> traces, read_traces(paths, clock));
  std::vector<FleetReport> reports;
  std::vector<terminal::PlotPanel> panels;
  std::string text;
  for (const Trace& trace : traces) {
    ASSIGN_OR_RETURN(FleetReport report, fleet_report(trace, question, clock));
    text += text.empty() ? "" : "\n";
    text += fleet_text(report);
    for (terminal::PlotPanel& panel : fleet_panels(report)) panels.push_back(std::move(panel));
    reports.push_back(std::move(report));
  }
  fmt::print("{}", output.json ? fleet_json(reports) : text);
  std::fflush(stdout);
  if (!output.plot.empty()) RETURN_IF_ERROR(terminal::write_plot(output.plot, panels));
  return check_lines(traces);
}

}  // namespace pagoda::replay

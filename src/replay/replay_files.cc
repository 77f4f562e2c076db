#include "replay/replay_files.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/clock.h"
#include "replay/report.h"
#include "replay/trace_files.h"
#include "terminal/plot.h"
#include "terminal/progress_bar.h"

namespace pagoda::replay {
namespace {

std::vector<terminal::PlotPanel> plot_panels(const std::vector<TraceReport>& reports,
                                             const ReplayQuestion& question) {
  std::vector<terminal::PlotPanel> panels;
  panels.reserve(reports.size());
  for (const TraceReport& report : reports) {
    panels.push_back(plot_panel(report, question.capacities));
  }
  return panels;
}

}  // namespace

Status replay_files(const std::vector<std::string>& paths, const ReplayQuestion& question,
                    const ReplayOutput& output) {
  const SteadyClock clock;
  ASSIGN_OR_RETURN(const std::vector<Trace> traces, read_traces(paths, clock));
  std::vector<TraceReport> reports;
  std::string text;
  for (const Trace& trace : traces) {
    terminal::ProgressBar bar(fmt::format("replaying {}", trace.name), "block touches", clock);
    reports.push_back(replay_trace(
        trace, question, clock,
        [&](std::uint64_t touches, std::uint64_t total) { bar.show(touches, total); }));
    bar.clear();
    text += text.empty() ? "" : "\n";
    text += replay_text(reports.back(), question.capacities, question.block_tokens);
  }
  fmt::print("{}",
             output.json ? replay_json(reports, question.capacities, question.block_tokens) : text);
  std::fflush(stdout);
  if (!output.plot.empty()) {
    RETURN_IF_ERROR(terminal::write_plot(output.plot, plot_panels(reports, question)));
  }
  return check_lines(traces);
}

}  // namespace pagoda::replay

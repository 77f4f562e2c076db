#include "replay/replay_files.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "base/byte_size.h"
#include "base/clock.h"
#include "replay/report.h"
#include "replay/trace.h"
#include "terminal/messages.h"
#include "terminal/plot.h"
#include "terminal/progress_bar.h"

namespace pagoda::replay {
namespace {

Result<std::vector<Trace>> read_traces(const std::vector<std::string>& paths, const Clock& clock) {
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    terminal::ProgressBar bar(fmt::format("reading {}", path), "bytes", clock);
    const TraceEvents events = {
        .on_malformed =
            [&](std::uint64_t line, const std::string& reason) {
              bar.clear();
              terminal::print_warning(fmt::format("{}:{}: {}: line skipped", path, line, reason));
            },
        .on_progress = [&](std::uint64_t done, std::uint64_t total) { bar.show(done, total); }};
    ASSIGN_OR_RETURN(Trace trace, read_trace(path, events));
    if (trace.requests.empty() && trace.lines_malformed > 0) {
      bar.clear();
      return Error{ErrorCode::kCorrupt, fmt::format("{}: no line of it is a request", path)};
    }
    traces.push_back(std::move(trace));
  }
  return traces;
}

Status write_plot(const std::string& path, const std::vector<TraceReport>& reports,
                  const ReplayQuestion& question) {
  std::vector<terminal::PlotPanel> panels;
  panels.reserve(reports.size());
  for (const TraceReport& report : reports) {
    panels.push_back(plot_panel(report, question.capacities));
  }
  std::ofstream stream(path, std::ios::binary);
  stream << terminal::plot_svg(panels);
  stream.close();
  if (!stream) return Error{ErrorCode::kIo, fmt::format("`plot`: cannot write '{}'", path)};
  return ok_status();
}

}  // namespace

Status replay_files(const std::vector<std::string>& paths, const ReplayQuestion& question,
                    const ReplayOutput& output) {
  const SteadyClock clock;
  ASSIGN_OR_RETURN(const std::vector<Trace> traces, read_traces(paths, clock));
  std::vector<TraceReport> reports;
  std::uint64_t lines_malformed = 0;
  std::string text;
  for (const Trace& trace : traces) {
    terminal::ProgressBar bar(fmt::format("replaying {}", trace.name), "block touches", clock);
    reports.push_back(replay_trace(
        trace, question, clock,
        [&](std::uint64_t touches, std::uint64_t total) { bar.show(touches, total); }));
    bar.clear();
    lines_malformed += trace.lines_malformed;
    text += text.empty() ? "" : "\n";
    text += replay_text(reports.back(), question.capacities, question.block_tokens);
  }
  fmt::print("{}",
             output.json ? replay_json(reports, question.capacities, question.block_tokens) : text);
  std::fflush(stdout);
  if (!output.plot.empty()) RETURN_IF_ERROR(write_plot(output.plot, reports, question));
  if (lines_malformed == 0) return ok_status();
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} malformed {} skipped", format_grouped(lines_malformed),
                           lines_malformed == 1 ? "line was" : "lines were")};
}

}  // namespace pagoda::replay

#include "replay/trace_files.h"

#include <fmt/format.h>

#include <utility>

#include "base/byte_size.h"
#include "terminal/messages.h"
#include "terminal/progress_bar.h"

namespace pagoda::replay {

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

Status check_lines(const std::vector<Trace>& traces) {
  std::uint64_t malformed = 0;
  for (const Trace& trace : traces) malformed += trace.lines_malformed;
  if (malformed == 0) return ok_status();
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} malformed {} skipped", format_grouped(malformed),
                           malformed == 1 ? "line was" : "lines were")};
}

}  // namespace pagoda::replay

// Trace files, replayed one after the other and reported.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "replay/replay_trace.h"

namespace pagoda::replay {

struct ReplayOutput {
  std::string plot;   // an SVG file for the curves; empty: none
  bool json = false;  // one JSON value instead of tables
};

// Reads the files, then prints the hit rates of each to stdout. The error says what went wrong
// besides, such as lines that were skipped.
Status replay_files(const std::vector<std::string>& paths, const ReplayQuestion& question,
                    const ReplayOutput& output);

}  // namespace pagoda::replay

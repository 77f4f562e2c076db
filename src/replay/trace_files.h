// Trace files, read with progress and warnings.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "replay/trace.h"

namespace pagoda::replay {

// Lines that are no requests are warned of and skipped; a file that has no others is an error.
Result<std::vector<Trace>> read_traces(const std::vector<std::string>& paths, const Clock& clock);

// The error that ends a command whose traces had such lines.
Status check_lines(const std::vector<Trace>& traces);

}  // namespace pagoda::replay

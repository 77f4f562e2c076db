// Latencies of a load over its time, as curves.
#pragma once

#include <vector>

#include "loadgen/run_load.h"
#include "terminal/plot.h"

namespace pagoda::loadgen {

// TTFT and mean ITL of the requests that were sent in each of at most kLoadSlices equal parts of
// the load, in milliseconds: the median and the 95th percentile. Parts without an answer have no
// point.
inline constexpr std::size_t kLoadSlices = 24;
std::vector<terminal::PlotPanel> plot_load(const LoadResult& result);

}  // namespace pagoda::loadgen

// A load's summary as the report of a benchmark.
#pragma once

#include "cli/bench_report.h"
#include "cli/load/summary.h"

namespace pagoda::load {

// Beyond this, at the 99th percentile, a sender that should wait for nobody was late.
inline constexpr double kLateSeconds = 0.010;

// Settings are the caller's to add.
cli::BenchReport report_load(const LoadResult& result, const Summary& summary, const Slo& slo,
                             bool open_loop);

}  // namespace pagoda::load

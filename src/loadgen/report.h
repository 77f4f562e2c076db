// A load's summary as the report of a benchmark.
#pragma once

#include "loadgen/summary.h"
#include "terminal/bench_report.h"

namespace pagoda::loadgen {

// Beyond this, at the 99th percentile, a sender that should wait for nobody was late.
inline constexpr double kLateSeconds = 0.010;

// Settings are the caller's to add.
terminal::BenchReport report_load(const LoadResult& result, const Summary& summary, const Slo& slo,
                                  bool open_loop);

}  // namespace pagoda::loadgen

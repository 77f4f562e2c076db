// Reports the results of a run of evaluations, for people and for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/measurement.h"
#include "terminal/bench_report.h"

namespace pagoda::eval {

struct EvalRow {
  std::string configuration;
  Measurement measured;
  std::int64_t kept_s = 0;  // Unix time of an earlier run that measured it; 0: this run did
};

// The first row is the baseline. Settings are the caller's to add.
terminal::BenchReport make_report(const std::vector<EvalRow>& rows);

// Quality over memory as an SVG file: KL, same top token and tasks, over bits a token.
std::string quality_svg(const std::vector<EvalRow>& rows);

}  // namespace pagoda::eval

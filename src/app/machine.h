// The machine that computes, for reports.
#pragma once

#include "kernels/ops.h"
#include "terminal/bench_machine.h"

namespace pagoda::app {

// With the kernel set's name and version.
terminal::BenchMachine describe_machine(const kernels::KernelSet& kernels);

}  // namespace pagoda::app

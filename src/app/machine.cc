#include "app/machine.h"

#include <fmt/format.h>

namespace pagoda::app {

terminal::BenchMachine describe_machine(const kernels::KernelSet& kernels) {
  return terminal::describe_machine(fmt::format("{} {}", kernels.name, kernels.version));
}

}  // namespace pagoda::app

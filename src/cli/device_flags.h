// Where a model runs, as every command that runs one takes it.
#pragma once

#include "app/device_choice.h"
#include "cli/flags.h"

namespace pagoda::cli {

// --device, --gpu-memory-utilization, --num-gpu-blocks-override, --tensor-parallel-size,
// --rank-timeout
void add_device_options(const CommandSpec& command, app::DeviceOptions& options);

}  // namespace pagoda::cli

#include "cli/device_flags.h"

namespace pagoda::cli {

void add_device_options(const CommandSpec& command, app::DeviceOptions& options) {
  command.add_choice(
      "--device", options.kind,
      {{"auto", app::DeviceKind::kAuto},
       {"cpu", app::DeviceKind::kCpu},
       {"cuda", app::DeviceKind::kCuda}},
      "what computes: auto (a GPU that can, else the CPU), cpu or cuda (default auto)");
  command
      .add_option("--gpu-memory-utilization", options.gpu_memory_utilization,
                  "share of the GPU's memory for weights, workspace and cache (default 0.92)")
      .range(0.01, 1.0);
  command
      .add_option("--num-gpu-blocks-override", options.gpu_blocks,
                  "blocks of the cache on a GPU (default: what its memory holds)")
      .range(1u, 1u << 31);
}

}  // namespace pagoda::cli

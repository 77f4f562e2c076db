#include "cli/device_flags.h"

#include "ranks/communicator.h"

namespace pagoda::cli {

void add_device_options(const CommandSpec& command, app::DeviceOptions& options) {
  command.add_choice("--device", options.kind,
                     {{"auto", app::DeviceKind::kAuto},
                      {"cpu", app::DeviceKind::kCpu},
                      {"cuda", app::DeviceKind::kCuda}},
                     "device: auto (a usable GPU, else the CPU), cpu or cuda (default auto)");
  command
      .add_option("--gpu-memory-utilization,--mem-fraction-static", options.gpu_memory_utilization,
                  "share of the GPU's memory for weights, workspace and cache; bounds nothing on a "
                  "CPU, and "
                  "says so (default 0.92)")
      .range(0.01, 1.0);
  command
      .add_option("--tensor-parallel-size", options.ranks,
                  "processes that compute the model together, on CPUs, with the answers of one "
                  "(default 1)")
      .range(1u, ranks::kRanksMax);
  command
      .add_option("--rank-timeout", options.rank_timeout_s,
                  "seconds that one of these processes may be silent before the model counts as "
                  "lost (default 60)")
      .range(1.0, 3600.0);
  command
      .add_option("--num-gpu-blocks-override", options.gpu_blocks,
                  "KV blocks, on a CPU too (default: as many as the memory for them holds)")
      .range(1u, 1u << 31);
}

}  // namespace pagoda::cli

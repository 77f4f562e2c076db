#include "cli/device_choice.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "cli/options.h"

namespace pagoda::cli {
namespace {

#if defined(PAGODA_HAVE_CUDA)
constexpr bool kBuiltForGpus = true;
#else
constexpr bool kBuiltForGpus = false;
#endif

Result<std::unique_ptr<engine::Machine>> on_cpu(const model::Config& config,
                                                const model::Weights& weights,
                                                const kernels::KernelSet& kernels,
                                                const engine::CpuMachineOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<engine::CpuMachine> machine,
                   engine::CpuMachine::create(config, weights, kernels, options));
  return std::unique_ptr<engine::Machine>(std::move(machine));
}

engine::GpuMachineOptions gpu_options(const DeviceOptions& device,
                                      const engine::CpuMachineOptions& options) {
  return {.shared = options,
          .memory_utilization = device.gpu_memory_utilization,
          .blocks = device.gpu_blocks};
}

}  // namespace

void add_device_options(CLI::App& command, DeviceOptions& options) {
  static const std::map<std::string, DeviceKind> kKinds = {
      {"auto", DeviceKind::kAuto}, {"cpu", DeviceKind::kCpu}, {"cuda", DeviceKind::kCuda}};
  command
      .add_option("--device", options.kind,
                  "what computes: auto (a GPU that can, else the CPU), cpu or cuda (default auto)")
      ->transform(CLI::CheckedTransformer(kKinds));
  command
      .add_option("--gpu-memory-utilization", options.gpu_memory_utilization,
                  "share of the GPU's memory for weights, workspace and cache (default 0.92)")
      ->check(CLI::Range(0.01, 1.0));
  command
      .add_option("--num-gpu-blocks-override", options.gpu_blocks,
                  "blocks of the cache on a GPU (default: what its memory holds)")
      ->check(CLI::Range(1u, 1u << 31));
}

bool shows_nvidia_gpu(const std::filesystem::path& root) {
  std::error_code unreadable;  // is as good as not there
  return std::filesystem::exists(root / "dev/nvidia0", unreadable) ||
         std::filesystem::exists(root / "proc/driver/nvidia", unreadable);
}

Result<std::unique_ptr<engine::Machine>> create_gpu_machine(
    const DeviceOptions& device, const model::Config& config, const model::Weights& weights,
    const kernels::KernelSet& kernels, const engine::CpuMachineOptions& options) {
  const bool may_fall_back = device.kind == DeviceKind::kAuto;
  if (device.kind == DeviceKind::kCpu || (may_fall_back && !kBuiltForGpus)) {
    return std::unique_ptr<engine::Machine>();
  }
  auto machine = engine::create_gpu_machine(config, weights, kernels, gpu_options(device, options));
  const bool lacking = !machine.ok() && (machine.error().code == ErrorCode::kNotFound ||
                                         machine.error().code == ErrorCode::kUnsupported);
  if (!lacking || !may_fall_back) return machine;
  if (machine.error().code == ErrorCode::kUnsupported || shows_nvidia_gpu()) {
    print_warning(fmt::format("{}; running on the CPU", machine.error().message));
  }
  return std::unique_ptr<engine::Machine>();
}

Result<std::unique_ptr<engine::Machine>> create_machine(const DeviceOptions& device,
                                                        const model::Config& config,
                                                        const model::Weights& weights,
                                                        const kernels::KernelSet& kernels,
                                                        const engine::CpuMachineOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Machine> machine,
                   create_gpu_machine(device, config, weights, kernels, options));
  if (machine) return machine;
  return on_cpu(config, weights, kernels, options);
}

Result<std::unique_ptr<engine::Machine>> create_random_machine(
    const DeviceOptions& device, const model::Config& config, const engine::RandomWeights& weights,
    const kernels::KernelSet& kernels, const engine::CpuMachineOptions& options) {
  if (device.kind == DeviceKind::kCpu) {
    return Error{ErrorCode::kUnsupported,
                 "--random-weights: weights are made on a GPU; for the CPU "
                 "bench/make_random_model.py writes a file of them"};
  }
  auto machine = engine::create_gpu_machine(config, weights, kernels, gpu_options(device, options));
  if (machine.ok()) return machine;
  return Error{machine.error().code, fmt::format("--random-weights: {}", machine.error().message)};
}

}  // namespace pagoda::cli

// Where a model runs: on this machine's cores or on its GPU.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/loaded_model.h"
#include "app/step_defaults.h"
#include "base/result.h"
#include "engine/backends/backend.h"
#include "engine/backends/cpu_backend.h"
#include "engine/backends/gpu_backend.h"
#include "model/config.h"
#include "model/weights.h"

namespace pagoda::app {

enum class DeviceKind { kAuto, kCpu, kCuda };

// The share of a GPU's memory that weights, workspace and KV take.
inline constexpr double kGpuMemoryUtilization = 0.92;

struct DeviceOptions {
  DeviceKind kind = DeviceKind::kAuto;
  std::optional<double> gpu_memory_utilization = {};  // unset: kGpuMemoryUtilization
  std::optional<std::uint32_t> gpu_blocks = {};
  std::uint32_t ranks = 1;  // processes that compute the model together, on CPUs
  double rank_timeout_s = 60;
  // How large steps are, where the device chooses it; unset: as BackendOptions::scheduler says.
  std::optional<StepFlags> steps = {};
};

// Whether the system under `root` shows an NVIDIA GPU or its driver, usable or not.
bool shows_nvidia_gpu(const std::filesystem::path& root = "/");

// Whether the options may choose a GPU, before it is known whether that can run the model.
bool may_run_on_gpu(const DeviceOptions& device);

// A model made ready, on one rank, where the options say. kAuto takes a GPU that can run it, else
// the CPU: with a warning where there is one that cannot, silently where there is none. Config,
// weights and kernels must outlive the backend.
Result<std::unique_ptr<engine::Backend>> create_backend(const DeviceOptions& device,
                                                        const model::Config& config,
                                                        const model::Weights& weights,
                                                        const kernels::KernelSet& kernels,
                                                        const engine::BackendOptions& options);

// The same, with as many ranks as the options say.
Result<std::unique_ptr<engine::Backend>> create_backend(const DeviceOptions& device,
                                                        const LoadedModel& model,
                                                        const kernels::KernelSet& kernels,
                                                        const engine::BackendOptions& options);

// The same, but nothing where it would be the CPU.
Result<std::unique_ptr<engine::Backend>> create_gpu_backend(const DeviceOptions& device,
                                                            const model::Config& config,
                                                            const model::Weights& weights,
                                                            const kernels::KernelSet& kernels,
                                                            const engine::BackendOptions& options);

// The same with weights that no file holds, on a GPU alone.
Result<std::unique_ptr<engine::Backend>> create_random_backend(
    const DeviceOptions& device, const model::Config& config, const engine::RandomWeights& weights,
    const kernels::KernelSet& kernels, const engine::BackendOptions& options);

}  // namespace pagoda::app

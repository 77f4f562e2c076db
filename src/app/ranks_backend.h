// Starts the ranks of a model on this machine's cores (ranks/rank_job.h).
#pragma once

#include <memory>

#include "app/device_choice.h"
#include "app/loaded_model.h"
#include "base/result.h"
#include "engine/backends/ranks_backend.h"

namespace pagoda::app {

// Config, weights and kernels must outlive the backend, as must the calling thread. An error also
// where a rank has loaded something else than this program.
Result<std::unique_ptr<engine::Backend>> create_ranks_backend(
    const DeviceOptions& device, const LoadedModel& model, const kernels::KernelSet& kernels,
    const engine::BackendOptions& options);

}  // namespace pagoda::app

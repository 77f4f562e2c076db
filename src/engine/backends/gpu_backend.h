// The GPU backend is a model on a GPU with a cache in its memory: weights, decoder, pages, cache
// and runner.
//
// Builds without CUDA have these functions too; they return an error that says so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/backends/backend.h"
#include "engine/backends/backend_options.h"
#include "model/config.h"
#include "model/weights.h"

namespace pagoda::engine {

// GpuBackendOptions are the options of a GPU alone, beside BackendOptions.
struct GpuBackendOptions {
  double memory_utilization = 0.92;          // share of the GPU's memory that may be taken
  std::optional<std::uint32_t> blocks = {};  // blocks of the cache, whatever the memory says
  bool graphs = true;                        // decode steps run as CUDA graphs
};

// RandomWeights are seeded weights that no file holds, for measuring a shape. The type is that of
// the matrices.
struct RandomWeights {
  gguf::TensorType type = gguf::TensorType::kBF16;
  std::uint64_t seed = 1;
};

// Returns the GPU's name, or why there is none to use.
Result<std::string> find_gpu();
// Returns the bytes of all its memory, or the same.
Result<std::uint64_t> find_gpu_bytes();

// Config and weights must outlive the backend. `kernels` samples on the host.
Result<std::unique_ptr<Backend>> create_gpu_backend(const model::Config& config,
                                                    const model::Weights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const BackendOptions& options,
                                                    const GpuBackendOptions& gpu);
Result<std::unique_ptr<Backend>> create_gpu_backend(const model::Config& config,
                                                    const RandomWeights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const BackendOptions& options,
                                                    const GpuBackendOptions& gpu);

}  // namespace pagoda::engine

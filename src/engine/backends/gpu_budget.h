// Computes how many blocks a cache on a GPU has, and whether weights fit: pure functions of flags
// and memory.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "model/config.h"

namespace pagoda::engine {

struct GpuBudget {
  std::uint64_t bytes_all = 0;   // all memory of the GPU
  std::uint64_t bytes_free = 0;  // free memory once weights and workspace are there
  std::uint64_t page_bytes = 0;
  double memory_utilization = 0.92;       // --gpu-memory-utilization
  std::optional<std::uint64_t> kv_bytes;  // --kv-cache-memory-bytes, instead
  double share = 1;                       // of those bytes; a draft model's cache has the rest
  std::optional<std::uint32_t> blocks;    // --num-gpu-blocks-override, instead of both
};

// Returns at least one. Errors name the flag that decides, what it asks for and what there is.
Result<std::uint32_t> count_blocks(const GpuBudget& budget);

struct GpuWeightsBudget {
  std::uint64_t packed = 0;      // bytes that a model's weights take on the GPU
  std::uint64_t in_file = 0;     // bytes of the same weights in the file
  std::uint64_t bytes_free = 0;  // free memory of the GPU
};

// Returns the bytes of workspace that each token of a step takes on a GPU: activations between the
// operations of a layer (model/gpu_decoder.cc takes them), without logits.
std::uint64_t workspace_row_bytes(const model::Config& config);

// An error says what weights that do not fit would take, before they are packed.
Status check_weights_fit(const GpuWeightsBudget& budget);

}  // namespace pagoda::engine

// Computes how many blocks a cache on a GPU has: a pure function of flags and memory.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"

namespace pagoda::engine {

struct GpuBudget {
  std::uint64_t bytes_all = 0;   // all memory of the GPU
  std::uint64_t bytes_free = 0;  // free memory once weights and workspace are there
  std::uint64_t page_bytes = 0;
  double memory_utilization = 0.92;       // --gpu-memory-utilization
  std::optional<std::uint64_t> kv_bytes;  // --kv-cache-memory-bytes, instead
  std::optional<std::uint32_t> blocks;    // --num-gpu-blocks-override, instead of both
};

// Returns at least one. Errors name the flag that decides, what it asks for and what there is.
Result<std::uint32_t> count_blocks(const GpuBudget& budget);

}  // namespace pagoda::engine

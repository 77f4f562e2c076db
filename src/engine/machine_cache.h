// The cache of a machine: how a number of blocks becomes one, and which context fits it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/cpu_machine.h"
#include "kv/cache.h"
#include "sched/footprint.h"

namespace pagoda::engine {

kv::CacheOptions cache_options(const CpuMachineOptions& options, std::uint32_t blocks,
                               const std::vector<kv::memory::LayerReach>& slices);

// The longest context up to `asked` whose request alone fits into `blocks`. An error when not even
// two tokens do: one to read, one to write.
Result<std::uint64_t> fitting_context(const sched::Footprint& footprint, std::uint64_t asked,
                                      std::uint32_t blocks, std::uint64_t kv_bytes);

}  // namespace pagoda::engine

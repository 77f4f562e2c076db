// The cache of a backend: how a number of blocks becomes one, and which context fits it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/backends/cpu_backend.h"
#include "kv/cache.h"
#include "sched/block_demand.h"

namespace pagoda::engine {

kv::CacheOptions cache_options(const BackendOptions& options, std::uint32_t blocks,
                               const std::vector<kv::memory::AttentionSpec>& groups);

// The longest context up to `asked` whose request alone fits into `blocks`. An error when not even
// two tokens do: one to read, one to write.
Result<std::uint64_t> fitting_context(const sched::BlockDemand& demand, std::uint64_t asked,
                                      std::uint32_t blocks, std::uint64_t kv_bytes);

}  // namespace pagoda::engine

// The KV cache groups of a model on CPUs.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/ops.h"
#include "kv/memory/cache_groups.h"
#include "model/config.h"

namespace pagoda::model {

// Layers that keep rows of one shape for the same keys share a group. Layers that attend to the
// rows of others have none. `element`: unset, the kernel set's default.
kv::memory::CacheGroupPlan plan_kv_groups(const Config& config, const kernels::KernelSet& kernels,
                                          std::optional<kv::memory::Element> element,
                                          std::uint32_t block_tokens);

}  // namespace pagoda::model

// Says whether the KV policy of a request drops pages (kv/page_selection.h).
#pragma once

#include <cstdint>
#include <optional>

#include "engine/request.h"
#include "sched/sequence_task.h"

namespace pagoda::engine {

// Nothing: none of the request's sequences becomes so long that its KV policy drops a page.
std::optional<sched::PageDrops> page_drops_of(const Request& request, const RequestLimits& limits,
                                              const TenantLimits& tenant,
                                              std::uint32_t block_tokens);

}  // namespace pagoda::engine

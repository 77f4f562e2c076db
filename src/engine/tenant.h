// Declares tenants as the engine's users see them.
#pragma once

#include <cstdint>
#include <string>

#include "sched/tenant.h"
#include "sched/wait_reason.h"

namespace pagoda::engine {

using sched::TenantId;
using sched::TenantLimits;
using sched::WaitReason;

// TenantStats shows a tenant a moment ago.
struct TenantStats {
  std::string name;
  std::uint64_t sequences_running = 0;
  std::uint64_t requests_queued = 0;
  std::uint64_t kv_tokens_held = 0;
  std::uint64_t blocks_cached = 0;    // blocks of its account; of tenant 0: public ones
  std::uint64_t tokens_computed = 0;  // since the start
  sched::TenantUse use;
};

}  // namespace pagoda::engine

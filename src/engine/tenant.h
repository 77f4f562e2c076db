// Tenants as the engine's users see them.
#pragma once

#include "sched/tenant.h"

namespace pagoda::engine {

using sched::TenantId;
using sched::TenantLimits;

}  // namespace pagoda::engine

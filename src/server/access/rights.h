// The access level that an endpoint requires of its caller. The table of endpoints (router.cc)
// names one for each.
#pragma once

#include <cstdint>

#include "server/access/caller.h"

namespace pagoda::server {

enum class Access : std::uint8_t {
  kAnyone,   // shows nothing that an outsider may not know
  kKey,      // shows and changes the caller's own data alone
  kAdmin,    // shows or changes data of others
  kMetrics,  // kAnyone, or kAdmin where metrics_need_admin
};

// Throws ApiError: 401 for an unknown caller, 403 for a caller without this right.
void require(Access level, const Caller& caller, bool metrics_need_admin);

// May the caller see the text of private prompts, which belong to a tenant or have a salt?
bool sees_private_text(const Caller& caller, bool show_prompts_to_admins);

}  // namespace pagoda::server

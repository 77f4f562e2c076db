// What an endpoint asks of who calls it. The table of endpoints (router.cc) has one for each.
#pragma once

#include <cstdint>

#include "server/access/caller.h"

namespace pagoda::server {

enum class Access : std::uint8_t {
  kAnyone,   // says nothing that an outsider may not know
  kKey,      // shows and changes the caller's own alone
  kAdmin,    // shows or changes more than that
  kMetrics,  // as kAnyone, or as kAdmin where the server was told so
};

// Throws ApiError: 401 for nobody, 403 for who may not.
void require(Access level, const Caller& caller, bool metrics_need_admin);

}  // namespace pagoda::server

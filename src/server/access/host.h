// By which name a server was asked.
//
// Whoever owns a name can make it point here, and the browser then takes the pages of that name for
// ours: they may read every reply. Keys protect against that; without them a request must name an
// address, localhost, or a name that the operator gave.
#pragma once

#include "server/access/access_rules.h"
#include "server/http_reply.h"

namespace pagoda::server {

// A request that names no host at all comes from no browser.
bool is_for_us(const HttpRequest& request, const AccessRules& rules, bool has_keys);

}  // namespace pagoda::server

// Checks the name by which a client reached the server, against DNS rebinding.
//
// The owner of a name can make it resolve to this server, and a browser then lets pages of that
// name read every reply. Keys protect against this; without keys a request must name an address,
// localhost, or a name that the operator allowed.
#pragma once

#include "server/access/access_rules.h"
#include "server/http_reply.h"

namespace pagoda::server {

// A request without any host does not come from a browser and passes.
bool is_for_us(const HttpRequest& request, const AccessRules& rules, bool has_keys);

}  // namespace pagoda::server

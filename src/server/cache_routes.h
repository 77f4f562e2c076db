// Endpoints by which clients move what the cache has: before a request, after it, and at the end of
// a session. All throw ApiError.
#pragma once

#include "server/router.h"

namespace pagoda::server {

// POST /cache/prefetch and /cache/demote: the body of a completion, or {"session": "key"}.
Routed prefetch(const HttpRequest& request, const ServerState& state);
Routed demote(const HttpRequest& request, const ServerState& state);
// POST /cache/session/close
Routed close_session(const HttpRequest& request, const ServerState& state);

}  // namespace pagoda::server

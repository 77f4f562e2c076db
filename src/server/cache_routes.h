// Endpoints by which clients ask what the cache has, and move it: before a request, after it, and
// at the end of a session. All throw ApiError.
#pragma once

#include "server/router.h"

namespace pagoda::server {

// POST /cache/prefetch and /cache/demote: the body of a completion, or {"session": "key"}.
Routed prefetch(const HttpRequest& request, const ServerState& state);
Routed demote(const HttpRequest& request, const ServerState& state);
// POST /cache/explain and /v1/kv/estimate: the body of a completion.
Routed explain_cache(const HttpRequest& request, const ServerState& state);
Routed estimate_turn(const HttpRequest& request, const ServerState& state);
// POST /cache/session/close
Routed close_session(const HttpRequest& request, const ServerState& state);

}  // namespace pagoda::server

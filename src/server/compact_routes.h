// Endpoints that make a conversation shorter by a summary of its older turns.
#pragma once

#include "server/http_reply.h"
#include "server/router.h"
#include "server/server_state.h"

namespace pagoda::server {

// POST /v1/chat/compact: a chat's body with "keep_turns".
Routed compact_chat(const HttpRequest& request, const ServerState& state);
// POST /v1/responses/compact: OpenAI's, with "keep_turns" besides.
Routed compact_response(const HttpRequest& request, const ServerState& state);

}  // namespace pagoda::server

// Records a completion that has ended: its line in the log, and its prompt tokens by who wrote
// them.
#pragma once

#include <string_view>

#include "server/completion.h"
#include "server/http_reply.h"
#include "server/server_state.h"

namespace pagoda::server {

bool is_completion_path(std::string_view path);

// Logs a completion that finished or whose client left.
void log_completion(const HttpRequest& request, const Completion& completion,
                    const ServerState& state);
// Logs an error reply that came instead of a completion; replies of other endpoints are not logged.
void log_refusal(const HttpRequest& request, const HttpReply& reply, const ServerState& state);
// Logs a client that left before its request was understood.
void log_client_gone(const HttpRequest& request, const ServerState& state);

}  // namespace pagoda::server

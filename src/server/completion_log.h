// What is written down when a request for a completion has ended: its line in the log, and its
// prompt tokens by who wrote them.
#pragma once

#include <string_view>

#include "server/completion.h"
#include "server/http_reply.h"
#include "server/server_state.h"

namespace pagoda::server {

bool is_completion_path(std::string_view path);

// Finished, or given up by its client.
void log_completion(const HttpRequest& request, const Completion& completion,
                    const ServerState& state);
// A reply that came instead of a completion; of other endpoints nothing is written.
void log_refusal(const HttpRequest& request, const HttpReply& reply, const ServerState& state);
// The client left before it was known what it asked for.
void log_client_gone(const HttpRequest& request, const ServerState& state);

}  // namespace pagoda::server

// What is written down when a request for a completion has ended: its line in the log, and its
// prompt tokens by who wrote them.
#pragma once

#include "server/completion.h"
#include "server/http_reply.h"
#include "server/server_state.h"

namespace pagoda::server {

// Finished, or given up by its client.
void log_completion(const HttpRequest& request, const Completion& completion,
                    const ServerState& state);
// A reply that came instead of a completion; of other endpoints nothing is written.
void log_refusal(const HttpRequest& request, const HttpReply& reply, const ServerState& state);

}  // namespace pagoda::server

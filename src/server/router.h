// Routes an HTTP request to its endpoint, and turns every error into the shape of the
// client's API.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "server/completion.h"
#include "server/deferred_reply.h"
#include "server/http_reply.h"
#include "server/server_state.h"

namespace pagoda::server {

// A whole reply, a completion that is to be started, or a deferred reply. Errors of the client are
// replies. TakesLong (api/chat_prompt.h) is thrown when a request that must be quick is not: route
// it again on a text worker.
using Routed = std::variant<HttpReply, std::unique_ptr<Completion>, std::unique_ptr<DeferredReply>>;
Routed route(const HttpRequest& request, const ServerState& state);

// Endpoints are numbered for counters; endpoint_count() stands for paths that do not exist.
std::size_t endpoint_count();
std::size_t endpoint_of(std::string_view path);
std::string_view endpoint_path(std::size_t endpoint);
std::string_view endpoint_method(std::size_t endpoint);

// Refuses a request before its body has come: it is for another host, or its page or caller has no
// access.
std::optional<HttpReply> refuse_early(const HttpRequest& head, const ServerState& state);

// Returns the headers that every reply to this request carries besides its own.
HeaderList reply_headers(const HttpRequest& request, const ServerState& state);

}  // namespace pagoda::server

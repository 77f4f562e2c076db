// From an HTTP request to its reply: which endpoint it is, and every error in OpenAI's shape.
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

// A whole reply, a completion that is to be started, or a reply that takes its time. Errors of the
// client are replies; TakesLong (api/chat_prompt.h) is thrown where a request that may not take
// long does: it is to be routed again elsewhere.
using Routed = std::variant<HttpReply, std::unique_ptr<Completion>, std::unique_ptr<DeferredReply>>;
Routed route(const HttpRequest& request, const ServerState& state);

// Endpoints by number, for those who count; endpoint_count() stands for paths that do not exist.
std::size_t endpoint_count();
std::size_t endpoint_of(std::string_view path);
std::string_view endpoint_path(std::size_t endpoint);
std::string_view endpoint_method(std::size_t endpoint);

// What can be refused before the body has come: another host's, a page or a caller that may
// not ask.
std::optional<HttpReply> refuse_early(const HttpRequest& head, const ServerState& state);

// What every reply to the request carries besides its own headers.
HeaderList reply_headers(const HttpRequest& request, const ServerState& state);

}  // namespace pagoda::server

// Checks which pages may send requests through a browser (CORS).
//
// A browser names the page's origin. Pages of the server itself may ask, and pages of the origins
// in AccessRules::cors_origins. access/host.h has already decided which names are the server's own.
#pragma once

#include <string>
#include <vector>

#include "server/http_reply.h"

namespace pagoda::server {

// `allowed` holds origins such as "https://chat.example.com"; "*" allows all.
bool may_ask(const HttpRequest& request, const std::vector<std::string>& allowed);

// Returns the headers by which the browser lets the page read the reply; none for other clients.
HeaderList origin_headers(const HttpRequest& request, const std::vector<std::string>& allowed);

// A preflight request asks whether the real one may follow; the reply allows it.
bool is_preflight(const HttpRequest& request);
HttpReply preflight_reply();

}  // namespace pagoda::server

// Requests that a browser sends for a page: whose pages may ask.
//
// A browser names the page's origin. Pages of the server itself may ask, pages of others where
// --cors-origin names them. Which names are the server's own is decided before (access/host.h).
#pragma once

#include <string>
#include <vector>

#include "server/http_reply.h"

namespace pagoda::server {

// `allowed`: "https://chat.example.com"; "*": all.
bool may_ask(const HttpRequest& request, const std::vector<std::string>& allowed);

// What tells the browser that the page may read the reply; nothing for other clients.
HeaderList origin_headers(const HttpRequest& request, const std::vector<std::string>& allowed);

// Before some requests a browser asks whether it may: the reply, for an origin that may.
bool is_preflight(const HttpRequest& request);
HttpReply preflight_reply();

}  // namespace pagoda::server

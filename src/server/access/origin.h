// Requests that a browser sends for a page: whose pages may ask.
//
// A browser names the page's origin. Pages of the server itself may ask, pages of others where
// --cors-origin names them. Without keys "itself" is an address or localhost: a name could be made
// to point here by whoever owns it, and its pages would then ask as if they were ours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http_reply.h"

namespace pagoda::server {

struct OriginRules {
  std::vector<std::string> allowed = {};  // "https://chat.example.com"; "*": all
  bool has_keys = false;
};

bool may_ask(const HttpRequest& request, const OriginRules& rules);

// What tells the browser that the page may read the reply; nothing for other clients.
HeaderList origin_headers(const HttpRequest& request, const OriginRules& rules);

// Before some requests a browser asks whether it may: the answer, for an origin that may.
bool is_preflight(const HttpRequest& request);
HttpReply preflight_reply();

}  // namespace pagoda::server

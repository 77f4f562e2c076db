#include "server/access/origin.h"

#include <algorithm>

namespace pagoda::server {
namespace {

bool is_same_origin(const HttpRequest& request) {
  if (!request.host || request.host->empty()) return false;
  return request.origin == "http://" + *request.host ||
         request.origin == "https://" + *request.host;
}

bool is_listed(const HttpRequest& request, const std::vector<std::string>& allowed) {
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& origin) {
    return origin == "*" || origin == request.origin;
  });
}

}  // namespace

bool may_ask(const HttpRequest& request, const std::vector<std::string>& allowed) {
  return request.origin.empty() || is_listed(request, allowed) || is_same_origin(request);
}

HeaderList origin_headers(const HttpRequest& request, const std::vector<std::string>& allowed) {
  if (request.origin.empty() || !is_listed(request, allowed)) return {};
  return {{"Access-Control-Allow-Origin", request.origin},
          {"Access-Control-Expose-Headers", "X-Request-Id, X-Ignored-Fields, Retry-After"},
          {"Vary", "Origin"}};
}

bool is_preflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && !request.origin.empty();
}

HttpReply preflight_reply() {
  return {
      .status = 204,
      .headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                  {"Access-Control-Allow-Headers",
                   "Authorization, Content-Type, X-Request-Id, X-Session-Id, X-Api-Key, "
                   "Anthropic-Version, Anthropic-Beta, Anthropic-Dangerous-Direct-Browser-Access"},
                  {"Access-Control-Max-Age", "600"}}};
}

}  // namespace pagoda::server

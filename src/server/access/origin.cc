#include "server/access/origin.h"

#include <arpa/inet.h>

#include <algorithm>

namespace pagoda::server {
namespace {

// "[::1]:8000" is host "::1".
std::string host_of(std::string_view authority) {
  if (authority.starts_with('[')) return std::string(authority.substr(1, authority.find(']') - 1));
  return std::string(authority.substr(0, authority.find(':')));
}

bool is_own_name(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return host == "localhost" || inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

bool is_same_origin(const HttpRequest& request, bool has_keys) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (request.origin.size() == scheme.size() + request.host.size() &&
        request.origin.starts_with(scheme) && request.origin.ends_with(request.host)) {
      return has_keys || is_own_name(host_of(request.host));
    }
  }
  return false;
}

bool is_listed(const HttpRequest& request, const OriginRules& rules) {
  return std::any_of(rules.allowed.begin(), rules.allowed.end(), [&](const std::string& allowed) {
    return allowed == "*" || allowed == request.origin;
  });
}

}  // namespace

bool may_ask(const HttpRequest& request, const OriginRules& rules) {
  return request.origin.empty() || is_listed(request, rules) ||
         is_same_origin(request, rules.has_keys);
}

HeaderList origin_headers(const HttpRequest& request, const OriginRules& rules) {
  if (request.origin.empty() || !is_listed(request, rules)) return {};
  return {{"Access-Control-Allow-Origin", request.origin},
          {"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"},
          {"Vary", "Origin"}};
}

bool is_preflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && !request.origin.empty();
}

HttpReply preflight_reply() {
  return {.status = 204,
          .headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                      {"Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id"},
                      {"Access-Control-Max-Age", "600"}}};
}

}  // namespace pagoda::server

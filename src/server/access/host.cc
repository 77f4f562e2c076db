#include "server/access/host.h"

#include <arpa/inet.h>

#include <algorithm>

#include "server/request_target.h"

namespace pagoda::server {
namespace {

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

bool is_for_us(const HttpRequest& request, const AccessRules& rules, bool has_keys) {
  if (!request.host || (has_keys && !rules.checks_host_with_keys)) return true;
  const std::optional<std::string> host = host_of(*request.host);
  if (!host) return false;
  return *host == "localhost" || is_address(*host) ||
         std::any_of(rules.own_names.begin(), rules.own_names.end(),
                     [&](const std::string& name) { return name == "*" || name == *host; });
}

}  // namespace pagoda::server

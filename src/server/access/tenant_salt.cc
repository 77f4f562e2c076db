#include "server/access/tenant_salt.h"

#include <fmt/format.h>

#include <cstdint>

#include "server/access/digest.h"

namespace pagoda::server {
namespace {

void append_counted(std::string& bytes, std::string_view part) {
  const std::uint64_t length = part.size();
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(length >> shift & 0xff);
  bytes += part;
}

}  // namespace

std::string tenant_salt(std::string_view secret, std::string_view tenant,
                        std::string_view cache_salt) {
  std::string bytes = "pagoda cache salt 1";
  append_counted(bytes, tenant);
  append_counted(bytes, cache_salt);
  return to_hex(hmac_sha256(secret, bytes));
}

std::string tenant_tag(std::string_view secret, std::string_view tenant) {
  const Digest digest = hmac_sha256(secret, fmt::format("pagoda tenant tag 1{}", tenant));
  return {digest.begin(), digest.begin() + 8};
}

}  // namespace pagoda::server

// Derives the salt of a tenant's blocks. Without the server's secret neither the tenant's name nor
// its cache_salt can be read from the salt, and no two pairs of them share one.
#pragma once

#include <string>
#include <string_view>

namespace pagoda::server {

// 64 hexadecimal digits: HMAC-SHA-256 under the secret of
//
//   "pagoda cache salt 1" | length of tenant | tenant | length of cache_salt | cache_salt
//
// with lengths of 8 bytes, least significant first. Without a cache_salt, the tenant's own salt.
std::string tenant_salt(std::string_view secret, std::string_view tenant,
                        std::string_view cache_salt);

// Returns 8 bytes that stand for a tenant in stores; its pages are removed by them.
std::string tenant_tag(std::string_view secret, std::string_view tenant);

}  // namespace pagoda::server

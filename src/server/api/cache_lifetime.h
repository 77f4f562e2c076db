// How long a prefix is to stay in the cache, as the clouds' APIs write it: "5m", "1h", "24h".
#pragma once

#include <string>
#include <string_view>

namespace pagoda::server {

struct CacheLifetime {
  double seconds = 0;
  // The client's word where another time is given instead of it; empty: it is as the client asked.
  std::string clipped = {};
};

inline constexpr double kLifetimeSecondsMax = 24 * 3600;

// Reads a number and one of s, m, h, d. More than a day is clipped to a day, and what cannot be
// read is `otherwise`, because clients send words of APIs that grow.
CacheLifetime read_lifetime(std::string_view text, double otherwise);

}  // namespace pagoda::server

// RemoteUrl says where a remote store is and which protocol it speaks.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace pagoda::store {

enum class RemoteKind : std::uint8_t { kRedis, kMemcached };

struct RemoteUrl {
  RemoteKind kind = RemoteKind::kRedis;
  bool tls = false;
  std::string host = {};
  std::string port = {};
  std::string user = {};      // empty: the default user
  std::string password = {};  // empty: no password is given
  std::uint32_t database = 0;

  // Formats the URL for people: without user and password.
  std::string shown() const;
};

// Parses redis://[[user]:password@]host[:port][/database], rediss:// for TLS,
// memcached://host[:port]. User and password may hold %XX. Errors name the text, but never its
// password.
Result<RemoteUrl> parse_remote_url(const std::string& text);

}  // namespace pagoda::store

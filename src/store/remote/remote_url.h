// RemoteUrl says where a remote store is and which protocol it speaks.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::store {

enum class RemoteKind : std::uint8_t { kRedis, kMemcached };

// Which servers a store has. kSentinel: one, whose address the sentinels know.
enum class RemoteLayout : std::uint8_t { kServer, kCluster, kSentinel };

inline constexpr std::size_t kAddressesMax = 64;  // addresses in one URL

struct NodeAddress {
  std::string host = {};
  std::string port = {};

  std::string shown() const;  // an IPv6 address in brackets
  auto operator<=>(const NodeAddress&) const = default;
};

struct RemoteUrl {
  RemoteKind kind = RemoteKind::kRedis;
  RemoteLayout layout = RemoteLayout::kServer;
  bool tls = false;
  // The server; nodes of a cluster to begin with; or sentinels. At least one.
  std::vector<NodeAddress> addresses = {};
  std::string user = {};      // empty: the default user
  std::string password = {};  // empty: no password is given
  std::uint32_t database = 0;
  std::string service = {};  // the sentinels' name for the server

  // Formats the URL for people: without user and password.
  std::string shown() const;
};

// Parses
//   redis://[[user]:password@]host[:port][/database]
//   redis-cluster://[[user]:password@]host[:port][,host[:port]]…
//   redis-sentinel://[[user]:password@]host[:port][,host[:port]]…/service[/database]
//   memcached://host[:port]
// and rediss…:// for TLS. User and password may hold %XX. Errors name the text, but never its
// password.
Result<RemoteUrl> parse_remote_url(const std::string& text);

}  // namespace pagoda::store

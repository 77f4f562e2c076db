// Where another server serves its pages, and which hosts a request may name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::store {

struct PeerAddress {
  std::string host;  // a name, or an address without brackets
  std::uint16_t port = 0;
  auto operator<=>(const PeerAddress&) const = default;

  std::string shown() const;
};

// HOST:PORT, or [ADDRESS]:PORT of IPv6.
Result<PeerAddress> parse_peer_address(std::string_view text);
// Several, with commas between them.
Result<std::vector<PeerAddress>> parse_peer_addresses(std::string_view text);

// PeerAllowList has the hosts that a request may name: names, addresses and networks. A name is
// compared as it is written and never looked up; an address must be in a network, so that odd ways
// of writing one ("127.1") are names that nobody listed.
class PeerAllowList {
 public:
  // "10.0.0.0/8,fd00::/8,worker-1"; the error names the entry.
  static Result<PeerAllowList> parse(std::string_view text);
  void add_host(const std::string& host);

  bool allows(const std::string& host) const;

 private:
  struct Network {
    std::array<unsigned char, 16> address = {};  // IPv4 is ::ffff:a.b.c.d
    unsigned bits = 128;
  };

  std::vector<Network> networks_;
  std::vector<std::string> names_;  // in lower case
};

// These hosts may be named where the operator says nothing.
inline constexpr std::string_view kLoopbackHosts = "localhost,127.0.0.0/8,::1";

}  // namespace pagoda::store

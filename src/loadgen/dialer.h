// Where a target's sockets go: its name is looked up once, and its certificates are trusted by one
// set of authorities.
#pragma once

#include <optional>

#include "base/result.h"
#include "loadgen/target.h"
#include "net/socket.h"

namespace pagoda::loadgen {

class Dialer {
 public:
  // An error names the host that is not known.
  static Result<Dialer> open(const Target& target);

  // Begins to connect. The dialer outlives the socket.
  Result<net::Socket> connect() const;
  const Target& target() const { return target_; }

 private:
  Target target_;
  net::Socket::Address address_ = {};
  std::optional<net::TlsClient> tls_;  // none: without TLS
};

}  // namespace pagoda::loadgen

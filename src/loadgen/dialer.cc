#include "loadgen/dialer.h"

#include <fmt/format.h>
#include <poll.h>

#include <vector>

namespace pagoda::loadgen {
namespace {

// Waits for an answer, but not for long.
bool answers(const net::Socket::Address& address, const std::string& host) {
  constexpr int kTimeoutMs = 3'000;
  Result<net::Socket> socket = net::Socket::connect(address, host, nullptr);
  if (!socket.ok()) return false;
  pollfd watched = {.fd = socket.value().descriptor(), .events = POLLOUT, .revents = 0};
  if (poll(&watched, 1, kTimeoutMs) != 1) return false;
  const Result<bool> established = socket.value().establish();
  return established.ok() && established.value();
}

// A name may have several addresses of which one is served ("localhost" in two protocols): the
// first that answers, else the first.
Result<net::Socket::Address> look_up(const net::Url& url) {
  const auto found = net::look_up(url.host, url.port);
  if (!found.ok() || found.value().empty()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}:{}: {}", url.host, url.port,
                             found.ok() ? "it has no address" : found.error().message)};
  }
  const std::vector<net::Socket::Address>& addresses = found.value();
  if (addresses.size() == 1) return addresses.front();
  for (const net::Socket::Address& address : addresses) {
    if (answers(address, url.host)) return address;
  }
  return addresses.front();
}

}  // namespace

Result<Dialer> Dialer::open(const Target& target) {
  Dialer dialer;
  dialer.target_ = target;
  ASSIGN_OR_RETURN(dialer.address_, look_up(target.url));
  if (target.url.tls) {
    ASSIGN_OR_RETURN(dialer.tls_, net::TlsClient::load({.verify = target.verify}));
  }
  return dialer;
}

Result<net::Socket> Dialer::connect() const {
  return net::Socket::connect(address_, target_.url.host, tls_ ? &*tls_ : nullptr);
}

}  // namespace pagoda::loadgen

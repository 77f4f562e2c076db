#include "store/remote/remote_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace pagoda::store {
namespace {

Error system_error(const char* what, int number) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(number))};
}

bool not_ready(int number) { return number == EAGAIN || number == EWOULDBLOCK || number == EINTR; }

int as_int(std::size_t bytes) { return static_cast<int>(std::min<std::size_t>(bytes, INT_MAX)); }

}  // namespace

Result<std::vector<RemoteSocket::Address>> look_up(const RemoteUrl& url) {
  addrinfo wanted = {};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(url.host.c_str(), url.port.c_str(), &wanted, &found);
  if (error != 0) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", url.host, gai_strerror(error))};
  }
  std::vector<RemoteSocket::Address> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    RemoteSocket::Address address = {};
    if (each->ai_addrlen > sizeof address.bytes) continue;
    std::memcpy(address.bytes, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

Result<std::unique_ptr<RemoteSocket>> RemoteSocket::open(const Address& address,
                                                         const std::string& host,
                                                         const TlsClient* tls) {
  const auto* const to = reinterpret_cast<const sockaddr*>(address.bytes);
  const int socket = ::socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return system_error("no socket", errno);
  std::unique_ptr<RemoteSocket> opened(new RemoteSocket(socket));
  const int on = 1;
  (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket, to, address.length) != 0 && errno != EINPROGRESS) {
    return system_error("cannot connect", errno);
  }
  if (tls != nullptr) {
    ASSIGN_OR_RETURN(opened->session_, tls->begin(socket, host));
  }
  opened->events_ = POLLOUT;
  return opened;
}

RemoteSocket::~RemoteSocket() {
  session_.reset();
  ::close(socket_);
}

Result<bool> RemoteSocket::establish() {
  if (!connected_) {
    pollfd ready = {socket_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 0) return false;
    int error = 0;
    socklen_t bytes = sizeof error;
    (void)getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error != 0) return system_error("cannot connect", error);
    connected_ = true;
    events_ = POLLIN;
  }
  if (session_ == nullptr) return true;
  ERR_clear_error();
  const int outcome = SSL_do_handshake(session_.get());
  if (outcome == 1) {
    events_ = POLLIN;
    return true;
  }
  const long verdict = SSL_get_verify_result(session_.get());
  const Result<std::size_t> why = explain(outcome);
  if (why.ok()) return false;
  if (verdict != X509_V_OK) {
    return Error{ErrorCode::kIo,
                 fmt::format("its certificate: {}", X509_verify_cert_error_string(verdict))};
  }
  return why.error();
}

Result<std::size_t> RemoteSocket::explain(int outcome) {
  const int number = errno;
  switch (SSL_get_error(session_.get(), outcome)) {
    case SSL_ERROR_WANT_READ:
      events_ = POLLIN;
      return std::size_t{0};
    case SSL_ERROR_WANT_WRITE:
      events_ = POLLIN | POLLOUT;
      return std::size_t{0};
    case SSL_ERROR_ZERO_RETURN:
      return Error{ErrorCode::kIo, "the server closed the connection"};
    case SSL_ERROR_SYSCALL:
      if (number == 0) return Error{ErrorCode::kIo, "the server closed the connection"};
      return system_error("the connection is lost", number);
    default:
      return Error{ErrorCode::kIo, "TLS: " + tls_error()};
  }
}

Result<std::size_t> RemoteSocket::send(std::string_view bytes) {
  if (bytes.empty()) return std::size_t{0};
  if (session_ != nullptr) {
    ERR_clear_error();
    errno = 0;
    const int sent = SSL_write(session_.get(), bytes.data(), as_int(bytes.size()));
    if (sent <= 0) return explain(sent);
    events_ = POLLIN;
    return static_cast<std::size_t>(sent);
  }
  const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (not_ready(errno)) return std::size_t{0};
  return system_error("the connection is lost", errno);
}

Result<std::size_t> RemoteSocket::receive(std::span<char> room) {
  if (session_ != nullptr) {
    ERR_clear_error();
    errno = 0;
    const int got = SSL_read(session_.get(), room.data(), as_int(room.size()));
    if (got <= 0) return explain(got);
    events_ = POLLIN;
    return static_cast<std::size_t>(got);
  }
  const ssize_t got = ::recv(socket_, room.data(), room.size(), 0);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) return Error{ErrorCode::kIo, "the server closed the connection"};
  if (not_ready(errno)) return std::size_t{0};
  return system_error("the connection is lost", errno);
}

}  // namespace pagoda::store

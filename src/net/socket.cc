#include "net/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/assert.h"

namespace pagoda::net {
namespace {

std::string system_words(int error) { return std::generic_category().message(error); }

int as_int(std::size_t bytes) { return static_cast<int>(std::min<std::size_t>(bytes, INT_MAX)); }

// Keeps SIGPIPE from this thread: OpenSSL writes to a socket that the peer has closed without
// MSG_NOSIGNAL. A signal that came meanwhile is taken away, unless one waited before.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t waiting;
    sigpending(&waiting);
    had_one_ = sigismember(&waiting, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const int error = errno;  // of the write
    const timespec at_once = {};
    if (!had_one_) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool had_one_ = false;
};

}  // namespace

Result<std::vector<Socket::Address>> look_up(const std::string& host, const std::string& port) {
  addrinfo wanted = {};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found);
  if (error != 0) return Error{ErrorCode::kNotFound, gai_strerror(error)};
  std::vector<Socket::Address> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Socket::Address address = {};
    if (each->ai_addrlen > sizeof address.bytes) continue;
    std::memcpy(address.bytes, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

Result<Socket> Socket::connect(const Address& address, const std::string& host,
                               const TlsClient* tls) {
  const auto* const to = reinterpret_cast<const sockaddr*>(address.bytes);
  const int descriptor = ::socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) {
    return Error{ErrorCode::kExhausted, fmt::format("no socket: {}", system_words(errno))};
  }
  Socket made(descriptor);
  const int on = 1;
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(descriptor, to, address.length) != 0 && errno != EINPROGRESS) {
    made.failure_ = system_words(errno);
  }
  if (tls != nullptr) {
    ASSIGN_OR_RETURN(made.session_, tls->begin(descriptor, host));
  }
  made.events_ = POLLOUT;
  return made;
}

Result<Socket> Socket::adopt(int descriptor, const TlsServer* tls) {
  Socket made(descriptor);
  const int on = 1;
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A client that is gone without a word is noticed within two minutes.
  const int idle_s = 60, between_s = 15, probes = 4;
  (void)setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  made.connected_ = true;
  made.events_ = POLLIN;
  if (tls != nullptr) {
    ASSIGN_OR_RETURN(made.session_, tls->begin(descriptor));
  }
  return made;
}

std::string Socket::binding() const {
  constexpr std::string_view kLabel = "EXPORTER-pagoda-peer";
  if (session_ == nullptr) return {};
  std::string bytes(32, '\0');
  const int made =
      SSL_export_keying_material(session_.get(), reinterpret_cast<unsigned char*>(bytes.data()),
                                 bytes.size(), kLabel.data(), kLabel.size(), nullptr, 0, 0);
  ASSERT(made == 1, "the handshake is over");
  return bytes;
}

Socket::Socket(Socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      session_(std::move(other.session_)),
      connected_(other.connected_),
      events_(other.events_),
      failure_(std::move(other.failure_)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(session_, other.session_);
  std::swap(connected_, other.connected_);
  std::swap(events_, other.events_);
  std::swap(failure_, other.failure_);
  return *this;
}

Socket::~Socket() {
  session_.reset();
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<bool> Socket::establish() {
  if (!failure_.empty()) return Error{ErrorCode::kIo, "cannot connect: " + failure_};
  if (!connected_) {
    pollfd ready = {descriptor_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 0) return false;
    int error = 0;
    socklen_t bytes = sizeof error;
    (void)getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error != 0) return Error{ErrorCode::kIo, "cannot connect: " + system_words(error)};
    connected_ = true;
    events_ = POLLIN;
  }
  if (session_ == nullptr) return true;
  ERR_clear_error();
  errno = 0;
  const int outcome = SSL_do_handshake(session_.get());
  if (outcome == 1) {
    events_ = POLLIN;
    return true;
  }
  const long verdict = SSL_get_verify_result(session_.get());
  std::size_t none = 0;
  const Progress progress = tls_outcome(outcome, none);
  if (progress == Progress::kBlocked) return false;
  if (verdict != X509_V_OK) {
    return Error{ErrorCode::kIo,
                 fmt::format("its certificate: {}", X509_verify_cert_error_string(verdict))};
  }
  return Error{ErrorCode::kIo,
               progress == Progress::kClosed ? "the server closed the connection" : failure_};
}

Socket::Progress Socket::system_failure(int error) {
  // ENOTCONN: it is still being connected.
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOTCONN) {
    return Progress::kBlocked;
  }
  failure_ = system_words(error);
  return Progress::kFailed;
}

Socket::Progress Socket::tls_outcome(int outcome, std::size_t& moved) {
  const int error = errno;
  if (outcome > 0) {
    moved = static_cast<std::size_t>(outcome);
    events_ = POLLIN;
    return Progress::kMoved;
  }
  switch (SSL_get_error(session_.get(), outcome)) {
    case SSL_ERROR_WANT_READ:
      events_ = POLLIN;
      return Progress::kBlocked;
    case SSL_ERROR_WANT_WRITE:
      events_ = POLLIN | POLLOUT;
      return Progress::kBlocked;
    case SSL_ERROR_ZERO_RETURN:
      return Progress::kClosed;
    case SSL_ERROR_SYSCALL:
      return error == 0 ? Progress::kClosed : system_failure(error);
    default:
      failure_ = "TLS: " + tls_error();
      return Progress::kFailed;
  }
}

Socket::Progress Socket::write(std::string_view bytes, std::size_t& moved) {
  if (!failure_.empty()) return Progress::kFailed;
  if (session_ != nullptr) {
    const NoSigpipe no_signal;
    ERR_clear_error();
    errno = 0;
    return tls_outcome(SSL_write(session_.get(), bytes.data(), as_int(bytes.size())), moved);
  }
  const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count < 0) return system_failure(errno);
  moved = static_cast<std::size_t>(count);
  return Progress::kMoved;
}

Socket::Progress Socket::read(std::span<char> room, std::size_t& moved) {
  // Also after a write that failed: a server may say why it closed.
  if (session_ != nullptr) {
    ERR_clear_error();
    errno = 0;
    return tls_outcome(SSL_read(session_.get(), room.data(), as_int(room.size())), moved);
  }
  const ssize_t count = ::recv(descriptor_, room.data(), room.size(), 0);
  if (count < 0) return system_failure(errno);
  moved = static_cast<std::size_t>(count);
  return count == 0 ? Progress::kClosed : Progress::kMoved;
}

}  // namespace pagoda::net

#include "loadgen/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace pagoda::loadgen {
namespace {

std::string system_words(int error) { return std::generic_category().message(error); }

std::string tls_words() {
  const unsigned long error = ERR_get_error();
  const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "TLS failed" : fmt::format("TLS: {}", reason);
}

// Waits for an answer, but not for long.
bool answers(const addrinfo& found) {
  constexpr int kTimeoutMs = 3'000;
  const int descriptor = socket(found.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  int error = connect(descriptor, found.ai_addr, found.ai_addrlen) == 0 ? 0 : errno;
  pollfd watched = {.fd = descriptor, .events = POLLOUT, .revents = 0};
  if (error == EINPROGRESS && poll(&watched, 1, kTimeoutMs) == 1) {
    socklen_t bytes = sizeof error;
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &bytes);
  }
  close(descriptor);
  return error == 0;
}

// A name may have several addresses of which one is served ("localhost" in two protocols): the
// first that answers, else the first.
Result<Dialer::Endpoint> look_up(const net::Url& url) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found);
  if (error != 0) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}:{}: {}", url.host, url.port, gai_strerror(error))};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  const addrinfo* chosen = found->ai_next == nullptr ? found : nullptr;
  for (const addrinfo* one = found; one != nullptr && chosen == nullptr; one = one->ai_next) {
    if (answers(*one)) chosen = one;
  }
  if (chosen == nullptr) chosen = found;
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(chosen->ai_addr);
  return Dialer::Endpoint{chosen->ai_family, {bytes, bytes + chosen->ai_addrlen}};
}

bool is_address(const std::string& host) {
  in6_addr room = {};
  return inet_pton(AF_INET, host.c_str(), &room) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &room) == 1;
}

}  // namespace

void Dialer::FreeContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void Socket::FreeSession::operator()(ssl_st* session) const { SSL_free(session); }

Result<Dialer> Dialer::open(const Target& target) {
  Dialer dialer;
  dialer.target_ = target;
  ASSIGN_OR_RETURN(dialer.endpoint_, look_up(target.url));
  if (!target.tls) return dialer;
  dialer.tls_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = dialer.tls_.get();
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (target.verify) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_default_verify_paths(context);
  }
  return dialer;
}

Result<Socket> Socket::connect(const Dialer& dialer) {
  const Dialer::Endpoint& endpoint = dialer.endpoint();
  const int descriptor = socket(endpoint.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) {
    return Error{ErrorCode::kExhausted, fmt::format("no socket: {}", system_words(errno))};
  }
  Socket made(descriptor);
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto* const address = reinterpret_cast<const sockaddr*>(endpoint.address.data());
  const auto bytes = static_cast<socklen_t>(endpoint.address.size());
  if (::connect(descriptor, address, bytes) != 0 && errno != EINPROGRESS) made.system_failure();
  if (dialer.tls() == nullptr) return made;
  made.session_.reset(SSL_new(dialer.tls()));
  SSL* const session = made.session_.get();
  const std::string& host = dialer.target().url.host;
  SSL_set_fd(session, descriptor);
  SSL_set_connect_state(session);
  if (is_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str());
  } else {
    // What SSL_set_tlsext_host_name stands for.
    SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(host.c_str()));
    SSL_set1_host(session, host.c_str());
  }
  return made;
}

Socket::Socket(Socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      session_(std::move(other.session_)),
      failure_(std::move(other.failure_)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(session_, other.session_);
  std::swap(failure_, other.failure_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Socket::Progress Socket::system_failure() {
  if (errno == EAGAIN || errno == EINTR || errno == ENOTCONN) return Progress::kBlocked;
  failure_ = system_words(errno);
  return Progress::kFailed;
}

Socket::Progress Socket::tls_outcome(int outcome, std::size_t& moved) {
  if (outcome > 0) {
    moved = static_cast<std::size_t>(outcome);
    return Progress::kMoved;
  }
  switch (SSL_get_error(session_.get(), outcome)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return Progress::kBlocked;
    case SSL_ERROR_ZERO_RETURN:
      return Progress::kClosed;
    case SSL_ERROR_SYSCALL:
      return errno == 0 ? Progress::kClosed : system_failure();
    default:
      failure_ = tls_words();
      return Progress::kFailed;
  }
}

Socket::Progress Socket::write(std::string_view bytes, std::size_t& moved) {
  if (!failure_.empty()) return Progress::kFailed;
  if (session_) {
    errno = 0;
    return tls_outcome(SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size())),
                       moved);
  }
  const ssize_t count = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count < 0) return system_failure();
  moved = static_cast<std::size_t>(count);
  return Progress::kMoved;
}

Socket::Progress Socket::read(std::span<char> room, std::size_t& moved) {
  if (session_) {
    errno = 0;
    return tls_outcome(SSL_read(session_.get(), room.data(), static_cast<int>(room.size())), moved);
  }
  const ssize_t count = recv(descriptor_, room.data(), room.size(), 0);
  if (count < 0) return system_failure();
  moved = static_cast<std::size_t>(count);
  return count == 0 ? Progress::kClosed : Progress::kMoved;
}

}  // namespace pagoda::loadgen

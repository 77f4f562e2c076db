// A connection to a server that never waits, over TCP as it is or within TLS.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loadgen/target.h"

struct ssl_ctx_st;
struct ssl_st;

namespace pagoda::loadgen {

// Where a target's sockets go: its name is looked up once, and its certificates are trusted by one
// set of authorities.
class Dialer {
 public:
  // An error names the host that is not known.
  static Result<Dialer> open(const Target& target);

  struct Endpoint {
    int family = 0;
    std::vector<std::uint8_t> address;  // a sockaddr
  };
  const Endpoint& endpoint() const { return endpoint_; }
  ssl_ctx_st* tls() const { return tls_.get(); }  // null: without TLS
  const Target& target() const { return target_; }

 private:
  struct FreeContext {
    void operator()(ssl_ctx_st* context) const;
  };

  Target target_;
  Endpoint endpoint_;
  std::unique_ptr<ssl_ctx_st, FreeContext> tls_;
};

class Socket {
 public:
  enum class Progress : std::uint8_t { kMoved, kBlocked, kClosed, kFailed };

  // Begins to connect; that it failed shows at the first read or write. An error: the system has no
  // descriptor to give.
  static Result<Socket> connect(const Dialer& dialer);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int descriptor() const { return descriptor_; }

  // `moved` is how many bytes, of kMoved. kBlocked: ask again when the descriptor is ready.
  Progress write(std::string_view bytes, std::size_t& moved);
  Progress read(std::span<char> room, std::size_t& moved);

  // Of kFailed, in words.
  const std::string& failure() const { return failure_; }

 private:
  struct FreeSession {
    void operator()(ssl_st* session) const;
  };

  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Progress system_failure();
  Progress tls_outcome(int outcome, std::size_t& moved);

  int descriptor_ = -1;
  std::unique_ptr<ssl_st, FreeSession> session_;
  std::string failure_;
};

}  // namespace pagoda::loadgen

// Socket sends bytes to a server, or to a client that came, and receives bytes, over plain TCP or
// TLS; it never waits. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/tls_client.h"
#include "net/tls_server.h"

namespace pagoda::net {

class Socket {
 public:
  struct Address {  // a sockaddr of any family
    alignas(8) char bytes[128];
    unsigned length;
  };

  // kBlocked: ask again when the descriptor is ready for events(). kClosed: by the server.
  enum class Progress : std::uint8_t { kMoved, kBlocked, kClosed, kFailed };

  // Begins to connect; that it failed shows in establish(), or at the first read or write. An
  // error: the system has no descriptor to give, or TLS cannot begin. `tls`: null for none;
  // outlives the socket.
  static Result<Socket> connect(const Address& address, const std::string& host,
                                const TlsClient* tls);
  // Takes over the descriptor of a client that was accepted; it is closed after an error as well.
  static Result<Socket> adopt(int descriptor, const TlsServer* tls);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // True once bytes can travel; call again when the socket is ready for more. Those who do not
  // call it may write at once: what they write then includes the greeting of TLS.
  Result<bool> establish();

  // `moved` is how many bytes, of kMoved.
  Progress write(std::string_view bytes, std::size_t& moved);
  Progress read(std::span<char> room, std::size_t& moved);
  // Returns 32 bytes that only the two ends of this TLS session know; empty without TLS. They bind
  // what is proven over the session to it. After establish().
  std::string binding() const;
  // Describes the failure after kFailed, in words.
  const std::string& failure() const { return failure_; }

  int descriptor() const { return descriptor_; }
  // Returns what poll() should wait for, besides POLLOUT while there is something to send.
  short events() const { return events_; }

 private:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Progress system_failure(int error);
  // Explains the outcome of an operation of OpenSSL: how many bytes it moved, or why none.
  Progress tls_outcome(int outcome, std::size_t& moved);

  int descriptor_ = -1;
  TlsSession session_;
  bool connected_ = false;
  short events_ = 0;
  std::string failure_;
};

// The addresses of a host. May take as long as the system's resolver does; an error says why there
// are none, without the host.
Result<std::vector<Socket::Address>> look_up(const std::string& host, const std::string& port);

}  // namespace pagoda::net

// RemoteSocket sends bytes to a server and receives bytes, over plain TCP or TLS; never waits. One
// thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/remote/tls_client.h"

namespace pagoda::store {

class RemoteSocket {
 public:
  struct Address {  // a sockaddr of any family
    alignas(8) char bytes[128];
    unsigned length;
  };

  // Begins to connect. `tls`: null for none; outlives the socket.
  static Result<std::unique_ptr<RemoteSocket>> open(const Address& address, const std::string& host,
                                                    const TlsClient* tls);
  ~RemoteSocket();
  RemoteSocket(const RemoteSocket&) = delete;
  RemoteSocket& operator=(const RemoteSocket&) = delete;

  // True once bytes can travel; call again when the socket is ready for more.
  Result<bool> establish();
  // Returns how many bytes moved; 0: the socket is not ready. An error once the connection is over.
  Result<std::size_t> send(std::string_view bytes);
  Result<std::size_t> receive(std::span<char> room);

  int descriptor() const { return socket_; }
  // Returns what poll() should wait for, besides POLLOUT while there is something to send.
  short events() const { return events_; }

 private:
  explicit RemoteSocket(int socket) : socket_(socket) {}
  // Explains an operation of OpenSSL that did not succeed.
  Result<std::size_t> explain(int outcome);

  int socket_;
  TlsSession session_;
  bool connected_ = false;
  short events_ = 0;
};

// May take as long as the system's resolver does. The error names the host.
Result<std::vector<RemoteSocket::Address>> look_up(const RemoteUrl& url);

}  // namespace pagoda::store

// RemoteConnection carries commands: each gets one reply, in order. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/socket.h"
#include "store/remote/protocol.h"

namespace pagoda::store {

class RemoteConnection {
 public:
  // A handler may send further commands.
  using Handler = std::function<void(Reply& reply)>;

  RemoteConnection(net::Socket socket, std::unique_ptr<Protocol> protocol);
  ~RemoteConnection();
  RemoteConnection(const RemoteConnection&) = delete;
  RemoteConnection& operator=(const RemoteConnection&) = delete;

  // Writes a value into the bytes that are sent; after an error they are not.
  using FillValue = std::function<Status(std::span<std::byte> value)>;

  // `value_bytes` is the size of the value that is asked for.
  void send(const Command& command, std::size_t value_bytes, Handler handler);
  // Sends a value to be kept. `fill` is called at once; its error is returned.
  Status send_value(std::string_view key, std::size_t value_bytes, std::uint32_t ttl_s,
                    const FillValue& fill, Handler handler);
  // Sends the first commands. handshake_status() has an error once the server does not let us in.
  void begin_handshake();
  const Status& handshake_status() const { return handshake_status_; }

  // Sends and receives what it can and hands replies to their handlers. An error once the
  // connection is over.
  Status move();
  // Tells every waiting handler kLost; nothing can be sent afterwards.
  void lose();

  const Protocol& protocol() const { return *protocol_; }
  std::size_t bytes_in_flight() const { return bytes_in_flight_; }
  std::size_t commands_in_flight() const { return expected_.size(); }
  std::uint64_t replies() const { return replies_; }
  int descriptor() const { return socket_.descriptor(); }
  short events() const;
  // True: the last round ended early; call move() again without waiting for the socket.
  bool has_more() const { return has_more_; }

 private:
  struct Expected {
    std::size_t value_bytes;
    Handler handler;
  };

  Status move_out();
  Status move_in();
  Status receive(std::size_t& bytes);
  Status hand_out();
  void expect(std::size_t value_bytes, Handler handler);
  void keep_spare(std::string text);

  net::Socket socket_;
  std::unique_ptr<Protocol> protocol_;
  Status handshake_status_ = ok_status();
  bool lost_ = false;
  std::deque<std::string> out_;  // large values have a string of their own, and stay there
  std::size_t sent_ = 0;         // bytes of its first string
  std::vector<std::string> spares_;
  std::vector<char> room_;
  std::deque<Expected> expected_;
  std::size_t bytes_in_flight_ = 0;
  std::uint64_t replies_ = 0;
  bool has_more_ = false;
};

}  // namespace pagoda::store

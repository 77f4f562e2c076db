// RemoteConnection carries commands: each gets one reply, in order. One thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
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

  // `value_bytes` is the size of the value that is sent or asked for.
  void send(const Command& command, std::size_t value_bytes, Handler handler);
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
  Status hand_out();

  net::Socket socket_;
  std::unique_ptr<Protocol> protocol_;
  Status handshake_status_ = ok_status();
  bool lost_ = false;
  std::string out_;
  std::size_t sent_ = 0;  // bytes of out_
  std::vector<char> room_;
  std::deque<Expected> expected_;
  std::size_t bytes_in_flight_ = 0;
  bool has_more_ = false;
};

}  // namespace pagoda::store

// A ZeroMQ socket whose calls never wait. One thread at a time uses it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::events {

class ZmqContext {
 public:
  ZmqContext();
  void* get() const { return context_.get(); }

 private:
  struct End {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, End> context_;
};

enum class SocketKind : std::uint8_t { kPublish, kRouter };

class ZmqSocket {
 public:
  // At most `messages_max` messages wait for one peer; more are not sent to that peer. `context`
  // outlives the socket.
  ZmqSocket(const ZmqContext& context, SocketKind kind, std::uint32_t messages_max);

  // Binds where `endpoint` stands for this host ('*', "::", ipc://), else connects, as vLLM does.
  // The error names the endpoint.
  Status open(const std::string& endpoint);
  Status bind(const std::string& endpoint);
  // Returns the bound endpoint: with the port's number where any port was asked for.
  const std::string& endpoint() const { return endpoint_; }

  // Sends one message of these frames. False: the message was not taken, not even in part.
  bool send(std::initializer_list<std::string_view> frames);
  // Returns the frames of the next message, if one has come.
  std::optional<std::vector<std::string>> receive();

  void* get() const { return socket_.get(); }

 private:
  struct Close {
    void operator()(void* socket) const;
  };

  void set(int option, int value);

  std::unique_ptr<void, Close> socket_;
  std::string endpoint_;
};

}  // namespace pagoda::events

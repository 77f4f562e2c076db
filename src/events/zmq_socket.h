// A ZeroMQ socket that never waits. One thread at a time.
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
  // `messages_max` wait for one peer; more are not sent to him. `context` outlives the socket.
  ZmqSocket(const ZmqContext& context, SocketKind kind, std::uint32_t messages_max);

  // Binds where `endpoint` stands for this machine ('*', "::", ipc://), else connects, as vLLM
  // does. The error names the endpoint.
  Status open(const std::string& endpoint);
  Status bind(const std::string& endpoint);
  // As bound: with the port's number where any was asked for.
  const std::string& endpoint() const { return endpoint_; }

  // One message of these frames. False: it was not taken, nothing of it.
  bool send(std::initializer_list<std::string_view> frames);
  // The frames of the next message, if one has come.
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

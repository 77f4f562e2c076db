// A Channel carries messages between the program that serves a model and one of its ranks, over a
// stream socket: a kind, a length and a body. Both ends are processes of this program on one
// machine, so that numbers are as the machine has them.
//
// Thread rule: one thread sends and one thread receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::ranks {

enum class MessageKind : std::uint32_t {
  kHello = 1,  // from a rank: who it is
  kSetup,      // to all ranks: what they load
  kReady,      // from a rank: what it has loaded
  kPages,      // to all ranks: how many pages they allocate; kReady answers
  kLaunch,     // to all ranks (engine/backends/launch_message.h)
  kResult,     // from rank 0: what a launch computed
  kLogits,     // from rank 0: logits of some rows, in order
  kAlive,      // from a rank: it works or waits for another
  kFailure,    // from a rank: why it ends, in words
};

inline constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 30;

struct MessageHeader {
  MessageKind kind;
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;  // of the body
};

using Bytes = std::vector<std::byte>;

class Channel {
 public:
  // Takes the socket.
  explicit Channel(int socket) : socket_(socket) {}
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  ~Channel();

  // Connects to a rank's server, a Unix socket.
  static Result<Channel> connect(const std::string& path);

  int socket() const { return socket_; }
  // Sends and reads of a body that take longer than this fail; none by default.
  void set_limit_ms(std::int64_t limit_ms) const;

  Status send(MessageKind kind, std::span<const std::byte> body) const;
  Status send(MessageKind kind, std::string_view body) const {
    return send(kind, std::as_bytes(std::span(body)));
  }
  // Waits for a message. kNotFound: the other end is closed.
  Result<MessageHeader> receive_header() const;
  Status receive_body(std::span<std::byte> body) const;
  // Waits for a message of this kind, and reads it whole.
  Result<Bytes> receive(MessageKind kind) const;

 private:
  int socket_;
};

}  // namespace pagoda::ranks

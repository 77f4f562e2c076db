// A Protocol turns commands into bytes and bytes into replies. Replies come in the order of
// commands.
//
// One thread. A protocol knows no socket: tests and a fuzzer cut its input anywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/remote/remote_url.h"

namespace pagoda::store {

enum class Verb : std::uint8_t {
  kGet,
  kHolds,       // is the key there?
  kSet,         // `value`, for `ttl_s`
  kErase,       // replies kNumber: how many keys were there
  kList,        // from cursor `number`: replies the next cursor, then keys
  kHead,        // the first `number` bytes of a value
  kLength,      // bytes of a value; 0 where there is none
  kGeneration,  // the number kept at the key, a random one where there is none; raised by `number`
};

struct Command {
  Verb verb = Verb::kGet;
  std::string_view key;
  std::string_view value = {};
  std::uint64_t number = 0;
  std::uint32_t ttl_s = 0;
};

enum class ReplyKind : std::uint8_t {
  kDone,
  kValue,    // `text`
  kAbsent,   // no such key
  kNumber,   // `number`
  kList,     // `items`
  kNoRoom,   // `text` says why
  kRefused,  // `text` says why
  kLost,     // the connection ended first
};

struct Reply {
  ReplyKind kind = ReplyKind::kDone;
  std::string text = {};
  std::uint64_t number = 0;
  std::vector<std::string> items = {};
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual std::string_view name() const = 0;
  // True: the protocol has kList, kHead, kLength and kErase. Otherwise it has kGeneration.
  virtual bool can_list() const = 0;
  // Returns the limit of one value; known once the server has let us in.
  virtual std::size_t item_bytes_max() const = 0;

  // Appends the first commands; returns how many replies they have.
  virtual std::size_t begin_handshake(std::string& out) = 0;
  // Takes one of those replies. The error says why the server cannot be used.
  virtual Status take_handshake_reply(const Reply& reply) = 0;

  virtual void encode(const Command& command, std::string& out) = 0;

  // Takes received bytes; then take replies until there is none. An error: the bytes are no reply,
  // or larger than any that was asked for, and nothing after them can be understood.
  virtual Status feed(std::string_view bytes) = 0;
  virtual Result<std::optional<Reply>> next() = 0;

  // Allows a value of that size; values larger than any asked for are an error.
  void expect_value(std::size_t bytes) { value_bytes_max_ = std::max(value_bytes_max_, bytes); }

 protected:
  std::size_t value_bytes_max_ = 4096;
};

// Makes a protocol for one connection. `item_bytes_max`: 0 leaves it to the protocol. An error
// where this build lacks the protocol.
Result<std::unique_ptr<Protocol>> make_protocol(const RemoteUrl& url, std::size_t item_bytes_max);

}  // namespace pagoda::store

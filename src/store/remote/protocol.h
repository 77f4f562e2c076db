// A server's protocol: commands to bytes, bytes to replies. Replies come in the order of commands.
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
  kErase,       // kNumber: how many were there
  kList,        // from cursor `number`: the next cursor, then keys
  kHead,        // the first `number` bytes of a value
  kLength,      // of a value; 0 where there is none
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
  // Has it kList, kHead, kLength, kErase? One that has not has kGeneration.
  virtual bool can_list() const = 0;
  // Of one value; known once the server has let us in.
  virtual std::size_t item_bytes_max() const = 0;

  // What is said first, and how many replies it has.
  virtual std::size_t begin_handshake(std::string& out) = 0;
  // One of those replies. The error says why the server cannot be used.
  virtual Status take_handshake_reply(const Reply& reply) = 0;

  virtual void encode(const Command& command, std::string& out) = 0;

  // What came; then replies until there is none. An error: the bytes are no reply, or larger than
  // any that was asked for, and nothing after them can be understood.
  virtual Status feed(std::string_view bytes) = 0;
  virtual Result<std::optional<Reply>> next() = 0;

  // A value of that size has been asked for; larger ones than any asked for are an error.
  void expect_value(std::size_t bytes) { value_bytes_max_ = std::max(value_bytes_max_, bytes); }

 protected:
  std::size_t value_bytes_max_ = 4096;
};

// For one connection. `item_bytes_max`: 0 leaves it to the protocol. An error where this build does
// not have it.
Result<std::unique_ptr<Protocol>> make_protocol(const RemoteUrl& url, std::size_t item_bytes_max);

}  // namespace pagoda::store

// A Protocol turns commands into bytes and bytes into replies. Replies come in the order of
// commands.
//
// One thread. A protocol knows no socket: tests and a fuzzer cut its input anywhere. Values are
// written straight into the bytes that are sent, and received straight into replies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/remote/remote_url.h"

namespace pagoda::store {

enum class Verb : std::uint8_t {
  kGet,
  kHolds,       // is the key there?
  kErase,       // replies kNumber: how many keys were there
  kList,        // from cursor `number`: replies the next cursor, then keys
  kHead,        // the first `number` bytes of a value
  kLength,      // bytes of a value; 0 where there is none
  kGeneration,  // the number kept at the key, a random one where there is none; raised by `number`
  kSlots,       // which node of a cluster has which slots
  kAsking,      // the next command is for a slot that the node is being given
  kPrimary,     // the address of the server that sentinels know as `key`
};

struct Command {
  Verb verb = Verb::kGet;
  std::string_view key = {};
  std::uint64_t number = 0;
};

enum class ReplyKind : std::uint8_t {
  kDone,
  kValue,    // `text`
  kAbsent,   // no such key
  kNumber,   // `number`
  kList,     // `parts`
  kNoRoom,   // `text` says why
  kRefused,  // `text` says why
  kLost,     // the connection ended first
};

struct Reply {
  ReplyKind kind = ReplyKind::kDone;
  std::string text = {};
  std::uint64_t number = 0;
  std::vector<Reply> parts = {};

  bool operator==(const Reply&) const = default;
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual std::string_view name() const = 0;
  // True: the protocol has kList, kHead, kLength and kErase, and those of clusters and sentinels.
  // Otherwise it has kGeneration.
  virtual bool can_list() const = 0;
  // Returns the limit of one value; known once the server has let us in.
  virtual std::size_t item_bytes_max() const = 0;

  // Appends the first commands; returns how many replies they have.
  virtual std::size_t begin_handshake(std::string& out) = 0;
  // Takes one of those replies. The error says why the server cannot be used.
  virtual Status take_handshake_reply(const Reply& reply) = 0;

  virtual void encode(const Command& command, std::string& out) = 0;
  // Makes `out` the command that keeps a value for `ttl_s`; returns where in `out` the bytes of the
  // value belong, which hold anything yet.
  virtual std::size_t encode_set(std::string_view key, std::size_t value_bytes, std::uint32_t ttl_s,
                                 std::string& out) = 0;

  // Takes received bytes; then take replies until there is none. An error: the bytes are no reply,
  // or larger than any that was asked for, and nothing after them can be understood.
  virtual Status feed(std::string_view bytes) = 0;
  virtual Result<std::optional<Reply>> next() = 0;

  // Returns where the next bytes may be put instead of being fed, after next() had no reply; often
  // nowhere. filled() says how many were.
  virtual std::span<char> room() { return {}; }
  virtual void filled(std::size_t) {}
  // Takes a large text of a reply that nobody needs any more: its memory serves another.
  virtual void recycle(std::string) {}

  // Allows a value of that size; values larger than any asked for are an error.
  void expect_value(std::size_t bytes) { value_bytes_max_ = std::max(value_bytes_max_, bytes); }

 protected:
  std::size_t value_bytes_max_ = 4096;
};

// Makes a protocol for one connection. `url`: whom it speaks to, and its login; addresses are not
// read. `item_bytes_max`: 0 leaves it to the protocol. An error where this build lacks the
// protocol.
Result<std::unique_ptr<Protocol>> make_protocol(const RemoteUrl& url, std::size_t item_bytes_max);

}  // namespace pagoda::store

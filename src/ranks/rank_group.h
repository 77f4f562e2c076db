// RankGroup is the serving program's end of its ranks: a channel to each.
//
// Whoever waits for one rank hears of the end, the failure or the silence of any. The first of them
// is the group's failure: from then on nothing is sent or awaited.
//
// Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ranks/channel.h"

namespace pagoda::ranks {

class RankGroup {
 public:
  // A rank may be silent for `limit` while it is waited for. `on_failure` is called once.
  RankGroup(std::vector<Channel> channels, std::chrono::milliseconds limit,
            std::function<void()> on_failure = {});

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(members_.size()); }
  const std::optional<Error>& failure() const { return failure_; }
  // Looks, without waiting, whether a rank has ended or failed.
  void check();
  // Fails the group for what the caller found in a message. Returns false.
  bool fail_by(std::string why);

  Status send_to_all(MessageKind kind, std::span<const std::byte> body);
  // Waits for the next message of a rank, which is of this kind. The result is good until the next
  // call.
  Result<std::span<const std::byte>> receive(std::uint32_t rank, MessageKind kind);

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    Channel channel;
    std::optional<MessageHeader> pending = {};  // its body has not been read
    Clock::time_point heard = {};
  };

  Error fail(Error error);
  // Waits until `rank` has a message, or looks once at all where it is nobody's.
  Status wait_for(std::optional<std::uint32_t> rank);
  Status take_header(std::uint32_t rank);
  Status check_silence() const;

  std::vector<Member> members_;
  std::chrono::milliseconds limit_;
  std::function<void()> on_failure_;
  std::optional<Error> failure_;
  Bytes body_;
};

}  // namespace pagoda::ranks

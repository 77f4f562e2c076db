#include "ranks/rank_group.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "ranks/communicator.h"

namespace pagoda::ranks {

RankGroup::RankGroup(std::vector<Channel> channels, std::chrono::milliseconds limit,
                     std::function<void()> on_failure)
    : limit_(limit), on_failure_(std::move(on_failure)) {
  ASSERT(!channels.empty() && channels.size() <= kRanksMax, "a group has ranks");
  for (Channel& channel : channels) {
    channel.set_limit_ms(limit.count());
    members_.push_back({.channel = std::move(channel)});
  }
}

Error RankGroup::fail(Error error) {
  if (failure_) return *failure_;
  failure_ = std::move(error);
  if (on_failure_) on_failure_();
  return *failure_;
}

void RankGroup::check() {
  if (failure_) return;
  const Status outcome = wait_for(std::nullopt);
  if (!outcome.ok()) fail(outcome.error());
}

bool RankGroup::fail_by(std::string why) {
  fail({ErrorCode::kCorrupt, std::move(why)});
  return false;
}

Status RankGroup::send_to_all(MessageKind kind, std::span<const std::byte> body) {
  if (failure_) return *failure_;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    const Status sent = members_[rank].channel.send(kind, body);
    if (sent.ok()) continue;
    check();  // it may have said why
    return fail({ErrorCode::kIo, fmt::format("rank {}: {}", rank, sent.error().message)});
  }
  return ok_status();
}

Result<std::span<const std::byte>> RankGroup::receive(std::uint32_t rank, MessageKind kind) {
  if (failure_) return *failure_;
  for (Member& member : members_) member.heard = Clock::now();
  Member& from = members_[rank];
  const Status came = wait_for(rank);
  if (!came.ok()) return fail(came.error());
  const MessageHeader header = *std::exchange(from.pending, std::nullopt);
  if (header.kind != kind) {
    return fail({ErrorCode::kCorrupt, fmt::format("rank {} sent a message out of turn", rank)});
  }
  if (body_.size() < header.bytes) body_.resize(header.bytes);
  const std::span<std::byte> body(body_.data(), header.bytes);
  const Status read = from.channel.receive_body(body);
  if (!read.ok()) {
    return fail({ErrorCode::kIo, fmt::format("rank {}: {}", rank, read.error().message)});
  }
  return std::span<const std::byte>(body);
}

Status RankGroup::wait_for(std::optional<std::uint32_t> rank) {
  constexpr int kLookMs = 200;
  std::array<pollfd, kRanksMax> watched;
  std::array<std::uint32_t, kRanksMax> ranks_of;
  while (!rank || !members_[*rank].pending) {
    nfds_t count = 0;
    for (std::uint32_t i = 0; i < ranks(); ++i) {
      if (members_[i].pending) continue;
      ranks_of[count] = i;
      watched[count++] = {.fd = members_[i].channel.socket(), .events = POLLIN, .revents = 0};
    }
    const int ready = poll(watched.data(), count, rank ? kLookMs : 0);
    for (nfds_t i = 0; ready > 0 && i < count; ++i) {
      if (watched[i].revents != 0) RETURN_IF_ERROR(take_header(ranks_of[i]));
    }
    if (!rank) return ok_status();
    if (ready <= 0) RETURN_IF_ERROR(check_silence());
  }
  return ok_status();
}

// Reads what a rank begins to say; signs of life and failures are dealt with at once.
Status RankGroup::take_header(std::uint32_t rank) {
  Member& member = members_[rank];
  member.heard = Clock::now();
  const Result<MessageHeader> header = member.channel.receive_header();
  if (!header.ok()) {
    const bool is_closed = header.error().code == ErrorCode::kNotFound;
    return Error{ErrorCode::kIo,
                 fmt::format("rank {} {}", rank, is_closed ? "ended" : header.error().message)};
  }
  if (header.value().kind == MessageKind::kAlive) return ok_status();
  if (header.value().kind != MessageKind::kFailure) {
    member.pending = header.value();
    return ok_status();
  }
  std::string why(header.value().bytes, ' ');
  RETURN_IF_ERROR(member.channel.receive_body(std::as_writable_bytes(std::span(why))));
  return Error{ErrorCode::kIo, fmt::format("rank {}: {}", rank, why)};
}

Status RankGroup::check_silence() const {
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    if (members_[rank].pending || Clock::now() - members_[rank].heard < limit_) continue;
    return Error{ErrorCode::kIo, fmt::format("rank {} has been silent for {} s", rank,
                                             static_cast<double>(limit_.count()) / 1000)};
  }
  return ok_status();
}

}  // namespace pagoda::ranks

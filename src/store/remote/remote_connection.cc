#include "store/remote/remote_connection.h"

#include <poll.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace pagoda::store {
namespace {

constexpr std::size_t kRoomBytes = 256u << 10;
// A round ends after so many bytes, so that deadlines and new requests are looked at.
constexpr std::size_t kRoundBytes = 4u << 20;
// A buffer that a burst made larger is freed.
constexpr std::size_t kOutBytesKept = 8u << 20;

// An error once the connection is over.
Status check_alive(net::Socket::Progress progress, const net::Socket& socket) {
  if (progress == net::Socket::Progress::kClosed) {
    return Error{ErrorCode::kIo, "the server closed the connection"};
  }
  if (progress == net::Socket::Progress::kFailed) {
    return Error{ErrorCode::kIo, "the connection is lost: " + socket.failure()};
  }
  return ok_status();
}

}  // namespace

RemoteConnection::RemoteConnection(net::Socket socket, std::unique_ptr<Protocol> protocol)
    : socket_(std::move(socket)), protocol_(std::move(protocol)), room_(kRoomBytes) {}

RemoteConnection::~RemoteConnection() { lose(); }

void RemoteConnection::send(const Command& command, std::size_t value_bytes, Handler handler) {
  if (lost_) {
    Reply reply = {.kind = ReplyKind::kLost};
    return handler(reply);
  }
  protocol_->expect_value(value_bytes);
  protocol_->encode(command, out_);
  expected_.push_back({value_bytes, std::move(handler)});
  bytes_in_flight_ += value_bytes;
}

void RemoteConnection::begin_handshake() {
  for (std::size_t replies = protocol_->begin_handshake(out_); replies > 0; --replies) {
    expected_.push_back({0, [this](const Reply& reply) {
                           if (handshake_status_.ok())
                             handshake_status_ = protocol_->take_handshake_reply(reply);
                         }});
  }
}

short RemoteConnection::events() const {
  const bool unsent = sent_ < out_.size();
  return static_cast<short>(socket_.events() | (unsent ? POLLOUT : 0));
}

Status RemoteConnection::move() {
  RETURN_IF_ERROR(move_out());
  RETURN_IF_ERROR(move_in());
  return move_out();
}

Status RemoteConnection::move_out() {
  std::size_t moved = 0;
  while (sent_ < out_.size() && moved < kRoundBytes) {
    std::size_t bytes = 0;
    const auto progress = socket_.write(std::string_view(out_).substr(sent_), bytes);
    if (progress == net::Socket::Progress::kBlocked) return ok_status();
    RETURN_IF_ERROR(check_alive(progress, socket_));
    sent_ += bytes;
    moved += bytes;
  }
  if (sent_ == out_.size() || sent_ > kRoundBytes) {
    out_.erase(0, sent_);
    sent_ = 0;
    if (out_.empty() && out_.capacity() > kOutBytesKept) out_.shrink_to_fit();
  }
  return ok_status();
}

Status RemoteConnection::move_in() {
  has_more_ = false;
  for (std::size_t moved = 0; moved < kRoundBytes;) {
    std::size_t bytes = 0;
    const auto progress = socket_.read(room_, bytes);
    if (progress == net::Socket::Progress::kBlocked) return ok_status();
    RETURN_IF_ERROR(check_alive(progress, socket_));
    moved += bytes;
    RETURN_IF_ERROR(protocol_->feed({room_.data(), bytes}));
    RETURN_IF_ERROR(hand_out());
  }
  has_more_ = true;
  return ok_status();
}

Status RemoteConnection::hand_out() {
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Reply> reply, protocol_->next());
    if (!reply) return ok_status();
    if (expected_.empty()) {
      return Error{ErrorCode::kCorrupt, "the server sent a reply that no request asked for"};
    }
    const Expected next = std::move(expected_.front());
    expected_.pop_front();
    bytes_in_flight_ -= next.value_bytes;
    next.handler(*reply);
  }
}

void RemoteConnection::lose() {
  lost_ = true;
  for (auto waiting = std::exchange(expected_, {}); const Expected& each : waiting) {
    Reply reply = {.kind = ReplyKind::kLost};
    each.handler(reply);
  }
  bytes_in_flight_ = 0;
}

}  // namespace pagoda::store

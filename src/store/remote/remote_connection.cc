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
// A string that waits to be sent takes no more commands once it has so many bytes.
constexpr std::size_t kStringBytes = 64u << 10;
// Large strings that were sent serve again, so many bytes of them.
constexpr std::size_t kSpareBytesMax = 8u << 20;
// A large value is received where it stays: little is read until its length is known.
constexpr std::size_t kReadInPlaceBytes = 64u << 10;
constexpr std::size_t kFirstReadBytes = 4u << 10;

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

void RemoteConnection::expect(std::size_t value_bytes, Handler handler) {
  expected_.push_back({value_bytes, std::move(handler)});
  bytes_in_flight_ += value_bytes;
}

void RemoteConnection::send(const Command& command, std::size_t value_bytes, Handler handler) {
  if (lost_) {
    Reply reply = {.kind = ReplyKind::kLost};
    return handler(reply);
  }
  protocol_->expect_value(value_bytes);
  if (out_.empty() || out_.back().size() >= kStringBytes) out_.emplace_back();
  protocol_->encode(command, out_.back());
  expect(value_bytes, std::move(handler));
}

Status RemoteConnection::send_value(std::string_view key, std::size_t value_bytes,
                                    std::uint32_t ttl_s, const FillValue& fill, Handler handler) {
  if (lost_) {
    Reply reply = {.kind = ReplyKind::kLost};
    handler(reply);
    return ok_status();
  }
  std::string text;
  if (!spares_.empty()) {  // its old bytes are written over
    text = std::move(spares_.back());
    spares_.pop_back();
  }
  const std::size_t at = protocol_->encode_set(key, value_bytes, ttl_s, text);
  RETURN_IF_ERROR(fill(std::as_writable_bytes(std::span(text)).subspan(at, value_bytes)));
  out_.push_back(std::move(text));
  expect(value_bytes, std::move(handler));
  return ok_status();
}

void RemoteConnection::begin_handshake() {
  out_.emplace_back();
  for (std::size_t replies = protocol_->begin_handshake(out_.back()); replies > 0; --replies) {
    expect(0, [this](const Reply& reply) {
      if (handshake_status_.ok()) handshake_status_ = protocol_->take_handshake_reply(reply);
    });
  }
}

short RemoteConnection::events() const {
  return static_cast<short>(socket_.events() | (out_.empty() ? 0 : POLLOUT));
}

Status RemoteConnection::move() {
  RETURN_IF_ERROR(move_out());
  RETURN_IF_ERROR(move_in());
  return move_out();
}

Status RemoteConnection::move_out() {
  for (std::size_t moved = 0; !out_.empty() && moved < kRoundBytes;) {
    std::size_t bytes = 0;
    const auto progress = socket_.write(std::string_view(out_.front()).substr(sent_), bytes);
    if (progress == net::Socket::Progress::kBlocked) return ok_status();
    RETURN_IF_ERROR(check_alive(progress, socket_));
    sent_ += bytes;
    moved += bytes;
    if (sent_ < out_.front().size()) continue;
    keep_spare(std::move(out_.front()));
    out_.pop_front();
    sent_ = 0;
  }
  return ok_status();
}

void RemoteConnection::keep_spare(std::string text) {
  const bool fits = (spares_.size() + 1) * text.capacity() <= kSpareBytesMax;
  if (text.size() >= kStringBytes && fits) spares_.push_back(std::move(text));
}

Status RemoteConnection::move_in() {
  has_more_ = false;
  for (std::size_t moved = 0; moved < kRoundBytes;) {
    std::size_t bytes = 0;
    RETURN_IF_ERROR(receive(bytes));
    if (bytes == 0) return ok_status();
    moved += bytes;
    RETURN_IF_ERROR(hand_out());
  }
  has_more_ = true;
  return ok_status();
}

// No bytes: there are none now.
Status RemoteConnection::receive(std::size_t& bytes) {
  const bool is_large = !expected_.empty() && expected_.front().value_bytes >= kReadInPlaceBytes;
  const std::span<char> direct = protocol_->room();
  const std::span<char> room =
      !direct.empty() ? direct : std::span(room_).first(is_large ? kFirstReadBytes : kRoomBytes);
  const auto progress = socket_.read(room, bytes);
  if (progress == net::Socket::Progress::kBlocked) {
    bytes = 0;
    return ok_status();
  }
  RETURN_IF_ERROR(check_alive(progress, socket_));
  if (direct.empty()) return protocol_->feed({room_.data(), bytes});
  protocol_->filled(bytes);
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
    ++replies_;
    next.handler(*reply);
    protocol_->recycle(std::move(reply->text));
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

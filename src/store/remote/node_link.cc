#include "store/remote/node_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pagoda::store {

NodeLink::NodeLink(const NodeAddress& address, Role role, const RemoteOptions& options,
                   const net::TlsClient* tls, const Clock& clock)
    : address_(address),
      options_(options),
      tls_(tls),
      clock_(clock),
      url_(options.url),
      pause_ns_(options.retry_first_ns) {
  if (role != Role::kSentinel) return;
  url_.password.clear();
  url_.database = 0;
}

void NodeLink::move() {
  switch (state_) {
    case State::kOff:
      return clock_.now_ns() >= retry_ns_ ? begin() : void();
    case State::kConnecting:
      return connect();
    case State::kHandshake:
      return handshake();
    case State::kOn:
      return serve();
  }
}

void NodeLink::begin() {
  auto found = net::look_up(address_.host, address_.port);
  if (!found.ok()) return give_up(fmt::format("{}: {}", address_.host, found.error().message));
  found_ = std::move(found).value();
  at_ = 0;
  deadline_ns_ = clock_.now_ns() + options_.connect_timeout_ns;
  try_next({ErrorCode::kIo, "it has no address"});
}

// An address that swallows packets leaves the others their share of the time.
void NodeLink::try_next(Error error) {
  socket_.reset();
  connection_.reset();
  for (; at_ < found_.size(); ++at_) {
    auto socket = net::Socket::connect(found_[at_], address_.host, tls_);
    if (!socket.ok()) {
      error = socket.error();
      continue;
    }
    const auto left = static_cast<std::int64_t>(found_.size() - at_);
    const std::int64_t now_ns = clock_.now_ns();
    address_deadline_ns_ = now_ns + (deadline_ns_ - now_ns) / left;
    socket_ = std::move(socket).value();
    state_ = State::kConnecting;
    ++at_;
    return;
  }
  give_up(error.message);
}

void NodeLink::connect() {
  const Result<bool> established = socket_->establish();
  if (!established.ok()) return try_next(established.error());
  if (!established.value()) {
    if (clock_.now_ns() < address_deadline_ns_) return;
    return try_next({ErrorCode::kIo, "no connection in time"});
  }
  auto protocol = make_protocol(url_, options_.item_bytes_max);
  if (!protocol.ok()) return give_up(protocol.error().message);
  connection_ = std::make_unique<RemoteConnection>(*std::exchange(socket_, std::nullopt),
                                                   std::move(protocol).value());
  connection_->begin_handshake();
  state_ = State::kHandshake;
  handshake();
}

void NodeLink::handshake() {
  const Status moved = connection_->move();
  const Status let_in = connection_->handshake_status();  // says more than a lost connection
  if (!let_in.ok() || !moved.ok()) {
    const bool wants_login = !let_in.ok() && url_.password.empty() &&
                             let_in.error().message.find("NOAUTH") != std::string::npos;
    if (wants_login && !options_.url.password.empty()) {
      url_.password = options_.url.password;
      return begin();
    }
    return try_next(let_in.ok() ? moved.error() : let_in.error());
  }
  if (connection_->commands_in_flight() > 0) {
    if (clock_.now_ns() < address_deadline_ns_) return;
    return try_next({ErrorCode::kIo, "no reply to the handshake in time"});
  }
  state_ = State::kOn;
  tried_ = true;
  condition_.clear();
  timeouts_ = 0;
  on_since_ns_ = last_reply_ns_ = clock_.now_ns();
  replies_at_first_ = connection_->replies();
}

void NodeLink::serve() {
  const std::uint64_t replies = connection_->replies();
  const Status moved = connection_->move();
  if (connection_->replies() != replies) {
    timeouts_ = 0;
    last_reply_ns_ = clock_.now_ns();
  }
  if (!moved.ok()) give_up(moved.error().message);
}

// A server that hangs up after the handshake counts as one that cannot be reached.
void NodeLink::give_up(const std::string& condition) {
  const std::int64_t now_ns = clock_.now_ns();
  if (state_ == State::kOn) {
    const bool lasted = now_ns - on_since_ns_ > options_.retry_last_ns;
    if (lasted || connection_->replies() != replies_at_first_) pause_ns_ = options_.retry_first_ns;
  }
  state_ = State::kOff;
  tried_ = true;
  condition_ = condition;
  socket_.reset();
  // Handlers learn of the loss while the connection is still there.
  if (connection_) connection_->lose();
  connection_.reset();
  retry_ns_ = now_ns + pause_ns_;
  pause_ns_ = std::min(2 * pause_ns_, options_.retry_last_ns);
}

bool NodeLink::is_stalled() const {
  return is_on() && timeouts_ >= options_.timeouts_max &&
         clock_.now_ns() - last_reply_ns_ >= options_.request_timeout_ns / 2;
}

int NodeLink::descriptor() const {
  if (connection_) return connection_->descriptor();
  return socket_ ? socket_->descriptor() : -1;
}

short NodeLink::events() const {
  if (connection_) return connection_->events();
  return socket_ ? socket_->events() : short{0};
}

std::int64_t NodeLink::next_due_ns() const {
  if (state_ == State::kOff) return retry_ns_;
  return is_on() ? kNever : address_deadline_ns_;
}

}  // namespace pagoda::store

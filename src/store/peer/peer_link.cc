#include "store/peer/peer_link.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kLinkRoundBytes = 4u << 20;

Error lost(net::Socket::Progress progress, const net::Socket& socket, bool is_proving) {
  if (progress != net::Socket::Progress::kClosed) {
    return {ErrorCode::kIo, "the connection is lost: " + socket.failure()};
  }
  return {ErrorCode::kIo, is_proving ? "it lets this server not in: `kv_store_key` may differ"
                                     : "it closed the connection"};
}

}  // namespace

void PeerLink::want(std::int64_t now_ns) {
  used_ns = now_ns;
  if (state_ == State::kOff && failures_ == 0) retry_ns_ = 0;
}

void PeerLink::connect_if_due(const PeerLinkTerms& terms, std::int64_t now_ns) {
  if (state_ != State::kOff || now_ns < retry_ns_) return;
  begun_ns_ = now_ns;
  const auto addresses = net::look_up(address_.host, fmt::format("{}", address_.port));
  now_ns = begun_ns_ = SteadyClock().now_ns();  // a resolver may take long
  if (!addresses.ok()) return turn_off(addresses.error().message, terms, now_ns);
  if (addresses.value().empty()) return turn_off("it has no address", terms, now_ns);
  const net::Socket::Address& address = addresses.value()[failures_ % addresses.value().size()];
  Result<net::Socket> socket = net::Socket::connect(address, address_.host, terms.tls);
  if (!socket.ok()) return turn_off(socket.error().message, terms, now_ns);
  socket_.emplace(std::move(socket).value());
  frames_ = FrameReader(kFirstFrameBytesMax);
  state_ = State::kConnecting;
}

void PeerLink::turn_off(const std::string& why, const PeerLinkTerms& terms, std::int64_t now_ns) {
  socket_.reset();
  out_.clear();
  sent_ = 0;
  has_more_ = false;
  state_ = State::kOff;
  was_tried_ = true;
  condition_ = why;
  const std::int64_t wait_ns =
      std::min(terms.retry_last_ns, terms.retry_first_ns << std::min<std::uint32_t>(failures_, 20));
  ++failures_;
  retry_ns_ = now_ns + wait_ns;
}

void PeerLink::send(std::string frame) { out_.push_back(std::move(frame)); }

short PeerLink::events() const {
  return static_cast<short>(socket_->events() | (out_.empty() ? 0 : POLLOUT));
}

std::int64_t PeerLink::next_due_ns(const PeerLinkTerms& terms) const {
  if (state_ == State::kOn) return INT64_MAX;
  return state_ == State::kOff ? retry_ns_ : begun_ns_ + terms.connect_timeout_ns;
}

void PeerLink::move(const PeerLinkTerms& terms, std::int64_t now_ns, const Handler& handler) {
  if (state_ == State::kOff) return;
  Status moved = ok_status();
  if (state_ == State::kConnecting) {
    const Result<bool> there = socket_->establish();
    if (!there.ok()) {
      moved = there.error();
    } else if (there.value()) {
      state_ = State::kChallenge;
    }
  }
  if (moved.ok() && state_ != State::kConnecting) moved = send_out();
  if (moved.ok() && state_ != State::kConnecting) moved = receive(terms, handler);
  if (moved.ok() && state_ != State::kConnecting) moved = send_out();
  if (moved.ok() && !is_on() && now_ns >= begun_ns_ + terms.connect_timeout_ns) {
    moved = Error{ErrorCode::kIo, "it does not answer"};
  }
  if (!moved.ok()) turn_off(moved.error().message, terms, now_ns);
}

Status PeerLink::send_out() {
  while (!out_.empty()) {
    std::size_t bytes = 0;
    const auto progress = socket_->write(std::string_view(out_.front()).substr(sent_), bytes);
    if (progress == net::Socket::Progress::kBlocked) return ok_status();
    if (progress != net::Socket::Progress::kMoved) {
      return lost(progress, *socket_, state_ == State::kWelcome);
    }
    sent_ += bytes;
    if (sent_ < out_.front().size()) continue;
    out_.pop_front();
    sent_ = 0;
  }
  return ok_status();
}

Status PeerLink::receive(const PeerLinkTerms& terms, const Handler& handler) {
  std::array<char, 256u << 10> room;
  has_more_ = false;
  for (std::size_t read = 0; read < kLinkRoundBytes;) {
    std::size_t bytes = 0;
    const auto progress = socket_->read(room, bytes);
    if (progress == net::Socket::Progress::kBlocked) return ok_status();
    if (progress != net::Socket::Progress::kMoved) {
      return lost(progress, *socket_, state_ == State::kWelcome);
    }
    read += bytes;
    frames_.feed(std::string_view(room.data(), bytes));
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<PeerFrame> frame, frames_.next());
      if (!frame) break;
      RETURN_IF_ERROR(take(*frame, terms, handler));
    }
  }
  has_more_ = true;
  return ok_status();
}

Status PeerLink::take(const PeerFrame& frame, const PeerLinkTerms& terms, const Handler& handler) {
  if (state_ == State::kChallenge) return take_challenge(frame, terms);
  if (state_ == State::kWelcome) return take_welcome(frame, terms);
  return handler(frame);
}

Status PeerLink::take_challenge(const PeerFrame& frame, const PeerLinkTerms& terms) {
  const auto challenge =
      frame.type == FrameType::kChallenge ? read_challenge(frame.body) : std::nullopt;
  if (!challenge) return Error{ErrorCode::kCorrupt, "it does not serve pages"};
  ASSIGN_OR_RETURN(const PeerNonce nonce, fresh_nonce());
  const std::string binding = socket_->binding();
  proof_ = {.role = PeerRole::kClient,
            .server_nonce = *challenge,
            .client_nonce = nonce,
            .deployment = terms.deployment,
            .binding = binding};
  send(proof_frame({nonce, make_proof(terms.key, proof_), terms.deployment}));
  proof_.binding = {};
  state_ = State::kWelcome;
  return ok_status();
}

Status PeerLink::take_welcome(const PeerFrame& frame, const PeerLinkTerms& terms) {
  const auto welcome = frame.type == FrameType::kWelcome ? read_welcome(frame.body) : std::nullopt;
  const std::string binding = socket_->binding();
  ProofInputs inputs = proof_;
  inputs.role = PeerRole::kServer;
  inputs.binding = binding;
  if (welcome) inputs.deployment = welcome->deployment;
  if (!welcome || !is_proof(terms.key, inputs, welcome->proof)) {
    return Error{ErrorCode::kInvalidArgument, "it has not proven to have this `kv_store_key`"};
  }
  is_of_this_deployment_ = welcome->deployment == terms.deployment;
  frames_.set_frame_bytes_max(terms.frame_bytes_max);
  state_ = State::kOn;
  was_tried_ = true;
  failures_ = 0;
  timeouts = 0;
  condition_.clear();
  return ok_status();
}

}  // namespace pagoda::store

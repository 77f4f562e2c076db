// PeerLink is the way to one other server: it connects, proves who it is and sees to it that the
// other is one of ours, sends what is asked and hands on what comes. Where the other is away it
// tries again now and then. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "net/socket.h"
#include "store/peer/peer_address.h"
#include "store/peer/peer_auth.h"
#include "store/peer/peer_frames.h"

namespace pagoda::store {

struct PeerLinkTerms {
  SecretKey key = {};
  DeploymentId deployment = {};
  const net::TlsClient* tls = nullptr;  // nullptr: plain TCP
  std::size_t frame_bytes_max = 0;      // of what the other sends once it is proven
  std::int64_t connect_timeout_ns = 1'000'000'000;
  std::int64_t retry_first_ns = 100'000'000;
  std::int64_t retry_last_ns = 10'000'000'000;
};

class PeerLink {
 public:
  // Takes a frame from the other; an error ends the connection.
  using Handler = std::function<Status(const PeerFrame&)>;

  // `is_named`: by a request, so that the link goes when nobody has used it for a while.
  PeerLink(PeerAddress address, bool is_named)
      : address_(std::move(address)), is_named_(is_named) {}

  const PeerAddress& address() const { return address_; }
  bool is_named() const { return is_named_; }
  bool is_on() const { return state_ == State::kOn; }
  // Neither connected nor about to be: what it is asked for would wait for the next attempt.
  bool is_off() const { return state_ == State::kOff; }
  bool was_tried() const { return was_tried_; }
  // Why it is off, in words; empty while nothing is wrong.
  const std::string& condition() const { return condition_; }
  // Has the other the same secret, or neither has one? Known once the link was on.
  bool is_of_this_deployment() const { return is_of_this_deployment_; }

  // Connects where that is due. Looks a name up, which may take its time.
  void connect_if_due(const PeerLinkTerms& terms, std::int64_t now_ns);
  // Tries at once, unless the last attempt failed a moment ago.
  void want(std::int64_t now_ns);
  void send(std::string frame);
  // Sends and receives what it can.
  void move(const PeerLinkTerms& terms, std::int64_t now_ns, const Handler& handler);
  void turn_off(const std::string& why, const PeerLinkTerms& terms, std::int64_t now_ns);

  // When connect_if_due() or move() has something to do without an event; INT64_MAX: never.
  std::int64_t next_due_ns(const PeerLinkTerms& terms) const;
  bool has_more() const { return has_more_; }
  int descriptor() const { return socket_ ? socket_->descriptor() : -1; }
  short events() const;

  std::size_t reads_open = 0;
  std::size_t finds_open = 0;
  std::uint32_t timeouts = 0;  // requests one after another that the other did not answer in time
  std::int64_t used_ns = 0;

 private:
  enum class State : std::uint8_t { kOff, kConnecting, kChallenge, kWelcome, kOn };

  Status receive(const PeerLinkTerms& terms, const Handler& handler);
  Status send_out();
  Status take(const PeerFrame& frame, const PeerLinkTerms& terms, const Handler& handler);
  Status take_challenge(const PeerFrame& frame, const PeerLinkTerms& terms);
  Status take_welcome(const PeerFrame& frame, const PeerLinkTerms& terms);

  PeerAddress address_;
  bool is_named_;
  State state_ = State::kOff;
  std::optional<net::Socket> socket_;
  FrameReader frames_{kFirstFrameBytesMax};
  ProofInputs proof_ = {};
  bool is_of_this_deployment_ = true;
  std::deque<std::string> out_;
  std::size_t sent_ = 0;
  bool has_more_ = false;
  bool was_tried_ = false;
  std::uint32_t failures_ = 0;  // attempts one after another
  std::int64_t retry_ns_ = 0;   // the next attempt
  std::int64_t begun_ns_ = 0;   // the current attempt
  std::string condition_;
};

}  // namespace pagoda::store

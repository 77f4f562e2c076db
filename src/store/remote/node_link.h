// NodeLink keeps a connection to one server: it connects, is let in, and where that fails or the
// connection is lost, it is off for a while and tries again. Nothing in it waits but the lookup of
// a name. One thread.
//
// It is the circuit breaker of its server: while it is off nobody asks the server for anything.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/socket.h"
#include "store/remote/remote_connection.h"
#include "store/remote/remote_options.h"

namespace pagoda::store {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

class NodeLink {
 public:
  // Who is at the other end. A sentinel gets our login only if it asks for one.
  enum class Role : std::uint8_t { kServer, kSentinel };

  // References outlive the link. `tls`: null for none.
  NodeLink(const NodeAddress& address, Role role, const RemoteOptions& options,
           const net::TlsClient* tls, const Clock& clock);

  const NodeAddress& address() const { return address_; }
  bool is_on() const { return state_ == State::kOn; }
  // False until the first attempt to connect has ended.
  bool was_tried() const { return tried_; }
  // Says why the server is off; empty before the first attempt has failed.
  const std::string& condition() const { return condition_; }
  // Call only while the link is on.
  RemoteConnection& connection() { return *connection_; }
  bool is_busy() const { return is_on() && connection_->commands_in_flight() > 0; }

  // Connects, sends and receives what it can.
  void move();
  // Gives the connection up and tells why: commands in flight are lost.
  void give_up(const std::string& condition);
  // A request that this server was asked for is late.
  void count_timeout() { ++timeouts_; }
  // True: requests were late one after another, without a reply in between.
  bool is_stalled() const;

  // -1: there is nothing to poll.
  int descriptor() const;
  short events() const;
  // True: call move() again without waiting for the socket.
  bool has_more() const { return is_on() && connection_->has_more(); }
  // When move() has something to do though nothing arrives.
  std::int64_t next_due_ns() const;

 private:
  enum class State : std::uint8_t { kOff, kConnecting, kHandshake, kOn };

  void begin();
  void try_next(Error error);
  void connect();
  void handshake();
  void serve();

  NodeAddress address_;
  const RemoteOptions& options_;
  const net::TlsClient* tls_;
  const Clock& clock_;
  RemoteUrl url_;  // the store's, with the login that the server gets

  State state_ = State::kOff;
  bool tried_ = false;
  std::string condition_;
  std::int64_t pause_ns_;
  std::int64_t retry_ns_ = 0;     // when the next attempt begins
  std::int64_t deadline_ns_ = 0;  // of the attempt, over all addresses of the name
  std::int64_t address_deadline_ns_ = 0;
  std::vector<net::Socket::Address> found_;  // addresses of the name, and which is tried
  std::size_t at_ = 0;
  std::optional<net::Socket> socket_;
  std::unique_ptr<RemoteConnection> connection_;

  std::int64_t on_since_ns_ = 0;
  std::int64_t last_reply_ns_ = 0;
  std::uint64_t replies_at_first_ = 0;
  std::uint32_t timeouts_ = 0;  // since the last reply
};

}  // namespace pagoda::store

// PeerConnection is a client of a PeerListener: its socket, its session, and what waits to be sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "net/socket.h"
#include "store/peer/peer_session.h"

namespace pagoda::store {

class PeerConnection {
 public:
  // Requests that a client may have open; beyond, it is no client of ours.
  static constexpr std::size_t kRequestsMax = 256;
  // A round ends after so many bytes, so that others have their turn.
  static constexpr std::size_t kRoundBytes = 4u << 20;

  struct PendingRead {
    ReadFrame asked;
    bool is_looked_for = false;  // the cache was asked for a lease
    bool is_absent = false;      // ... and has none
  };

  PeerConnection(std::uint64_t number, net::Socket socket, std::int64_t now_ns)
      : number_(number), socket_(std::move(socket)), begun_ns_(now_ns), moved_ns_(now_ns) {}

  std::uint64_t number() const { return number_; }
  // Reads what has come, unless too much waits to be sent. An error: the connection is over.
  Status receive(const PeerSession::Terms& terms, std::size_t out_bytes_max,
                 std::vector<PeerRequest>& requests);
  Status send(std::int64_t now_ns);
  void put(std::string bytes);

  bool is_proven() const { return session_ && session_->is_proven(); }
  const PeerSession* session() const { return session_ ? &*session_ : nullptr; }
  bool is_over() const { return is_over_; }
  void end() { is_over_ = true; }
  std::int64_t begun_ns() const { return begun_ns_; }
  // When something was taken last, or when it began to wait.
  std::int64_t moved_ns() const { return moved_ns_; }
  std::size_t out_bytes() const { return out_bytes_; }
  bool has_more() const { return has_more_; }
  int descriptor() const { return socket_.descriptor(); }
  short events(std::size_t out_bytes_max) const;

  std::deque<PendingRead>& reads() { return reads_; }
  std::size_t finds_open = 0;  // at most kRequestsMax, and as many reads

 private:
  std::uint64_t number_;
  net::Socket socket_;
  std::optional<PeerSession> session_;
  std::deque<PendingRead> reads_;
  std::deque<std::string> out_;
  std::size_t sent_ = 0;  // bytes of its first string
  std::size_t out_bytes_ = 0;
  std::int64_t begun_ns_;
  std::int64_t moved_ns_;
  bool has_more_ = false;
  bool is_over_ = false;
};

}  // namespace pagoda::store

#include "store/peer/peer_connection.h"

#include <poll.h>

#include <array>
#include <string_view>
#include <utility>

namespace pagoda::store {
namespace {

Error closed(net::Socket::Progress progress, const net::Socket& socket) {
  const bool by_client = progress == net::Socket::Progress::kClosed;
  return {ErrorCode::kIo, by_client ? "it closed the connection" : socket.failure()};
}

}  // namespace

Status PeerConnection::receive(const PeerSession::Terms& terms, std::size_t out_bytes_max,
                               std::vector<PeerRequest>& requests) {
  has_more_ = false;
  if (!session_) {
    ASSIGN_OR_RETURN(const bool is_there, socket_.establish());
    if (!is_there) return ok_status();
    PeerSession::Terms bound = terms;
    bound.binding = socket_.binding();
    session_.emplace(std::move(bound));
    put(session_->greeting());
  }
  std::array<char, 64u << 10> room;
  for (std::size_t read = 0; out_bytes_ <= out_bytes_max;) {
    std::size_t bytes = 0;
    const auto progress = socket_.read(room, bytes);
    if (progress == net::Socket::Progress::kBlocked) return ok_status();
    if (progress != net::Socket::Progress::kMoved) return closed(progress, socket_);
    std::string reply;
    RETURN_IF_ERROR(session_->feed(std::string_view(room.data(), bytes), reply, requests));
    if (!reply.empty()) put(std::move(reply));
    read += bytes;
    has_more_ = read >= kRoundBytes || requests.size() >= kRequestsMax;
    if (has_more_) break;
  }
  return ok_status();
}

void PeerConnection::put(std::string bytes) {
  out_bytes_ += bytes.size();
  out_.push_back(std::move(bytes));
}

Status PeerConnection::send(std::int64_t now_ns) {
  if (out_.empty()) moved_ns_ = now_ns;
  for (std::size_t moved = 0; !out_.empty() && moved < kRoundBytes;) {
    std::size_t bytes = 0;
    const auto progress = socket_.write(std::string_view(out_.front()).substr(sent_), bytes);
    if (progress == net::Socket::Progress::kBlocked) return ok_status();
    if (progress != net::Socket::Progress::kMoved) return closed(progress, socket_);
    moved_ns_ = now_ns;
    moved += bytes;
    sent_ += bytes;
    if (sent_ < out_.front().size()) continue;
    out_bytes_ -= out_.front().size();
    out_.pop_front();
    sent_ = 0;
  }
  return ok_status();
}

short PeerConnection::events(std::size_t out_bytes_max) const {
  const short reading = out_bytes_ <= out_bytes_max ? socket_.events() : short{0};
  return static_cast<short>(reading | (out_.empty() ? 0 : POLLOUT));
}

}  // namespace pagoda::store

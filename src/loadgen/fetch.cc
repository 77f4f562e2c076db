// One request and its whole reply, waited for.
#include <fmt/format.h>
#include <poll.h>

#include <array>

#include "loadgen/dialer.h"
#include "loadgen/reply_reader.h"
#include "loadgen/run_load.h"

namespace pagoda::loadgen {
namespace {

constexpr std::size_t kBodyBytesMax = 16 << 20;

Error failed(const Target& target, const std::string& reason) {
  return {ErrorCode::kIo, fmt::format("{}:{}: {}", target.url.host, target.url.port, reason)};
}

// Waits until the socket may have changed; false when it is too late.
bool wait_for(const net::Socket& socket, bool to_write, std::int64_t until_ns, const Clock& clock) {
  const std::int64_t left_ns = until_ns - clock.now_ns();
  if (left_ns <= 0) return false;
  const short wanted = static_cast<short>(POLLIN | (to_write ? POLLOUT : 0));
  pollfd watched = {.fd = socket.descriptor(), .events = wanted, .revents = 0};
  // Within TLS what is waited for is not always what was asked for: look again soon.
  constexpr std::int64_t kLookNs = 20'000'000;
  poll(&watched, 1, static_cast<int>(std::min(left_ns, kLookNs) / 1'000'000) + 1);
  return true;
}

}  // namespace

Result<WholeReply> fetch(const Target& target, const std::string& request, double timeout_s) {
  using Progress = net::Socket::Progress;
  const SteadyClock clock;
  const std::int64_t until_ns = clock.now_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  ASSIGN_OR_RETURN(const Dialer dialer, Dialer::open(target));
  ASSIGN_OR_RETURN(net::Socket socket, dialer.connect());
  ReplyReader reader;
  WholeReply reply;
  std::array<char, 16 << 10> room;
  std::size_t written = 0;
  while (reader.state() != ReplyReader::State::kDone) {
    const bool writes = written < request.size();
    std::size_t moved = 0;
    const Progress progress = writes
                                  ? socket.write(std::string_view(request).substr(written), moved)
                                  : socket.read(room, moved);
    if (progress == Progress::kFailed) return failed(target, socket.failure());
    if (progress == Progress::kClosed) reader.end();
    if (progress == Progress::kBlocked && !wait_for(socket, writes, until_ns, clock)) {
      return failed(target, fmt::format("no reply within {} s", timeout_s));
    }
    if (progress == Progress::kMoved && writes) written += moved;
    if (progress == Progress::kMoved && !writes) reader.put({room.data(), moved}, reply.body);
    if (reader.state() == ReplyReader::State::kBroken || reply.body.size() > kBodyBytesMax) {
      return failed(target, "what came is no HTTP reply");
    }
  }
  reply.status = reader.status();
  return reply;
}

}  // namespace pagoda::loadgen

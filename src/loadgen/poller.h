// Which of many sockets are ready, and whether it is time: epoll, edge-triggered, with a timer that
// knows nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pagoda::loadgen {

class Poller {
 public:
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // `slot` comes back from wait() whenever the socket has become readable or writable, or has
  // failed. Closing the descriptor takes it out.
  void add(int descriptor, std::uint32_t slot);

  // The slots that are ready, a bounded number of them; none when `nanoseconds` passed first or a
  // signal came. Valid until the next call.
  std::span<const std::uint32_t> wait(std::int64_t nanoseconds);

 private:
  void set_timer(std::int64_t nanoseconds) const;

  int epoll_;
  int timer_;
  std::vector<std::uint32_t> ready_;
};

}  // namespace pagoda::loadgen

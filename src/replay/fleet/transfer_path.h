// Bytes on their way, in simulated time. A link carries one transfer after the other, each as fast
// as it can; a transfer over several links takes all of them from the moment the last is free.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace pagoda::replay {

// Nanoseconds that an amount takes at a rate a second; a rate of 0 is no bound.
inline std::int64_t duration_ns(double amount, double rate) {
  return rate <= 0 ? 0 : static_cast<std::int64_t>(std::llround(amount / rate * 1e9));
}

struct TransferLink {
  double bytes_per_second = 0;  // 0: no bound
  std::int64_t free_ns = 0;     // when it has carried all that was given to it
};

class TransferPath {
 public:
  // Other links than the first may be nullptr: none.
  explicit TransferPath(TransferLink* first, TransferLink* second = nullptr,
                        std::int64_t latency_ns = 0)
      : links_{first, second}, latency_ns_(latency_ns) {}

  // When the last of so many bytes would arrive.
  std::int64_t arrival_ns(std::int64_t now_ns, double bytes) const {
    std::int64_t slowest_ns = 0;
    for (const TransferLink* const link : links_) {
      if (link != nullptr) {
        slowest_ns = std::max(slowest_ns, duration_ns(bytes, link->bytes_per_second));
      }
    }
    return begin_ns(now_ns) + slowest_ns + latency_ns_;
  }

  // They are sent; returns when they arrive.
  std::int64_t send(std::int64_t now_ns, double bytes) {
    const std::int64_t arrival = arrival_ns(now_ns, bytes);
    const std::int64_t begin = begin_ns(now_ns);
    for (TransferLink* const link : links_) {
      if (link != nullptr) link->free_ns = begin + duration_ns(bytes, link->bytes_per_second);
    }
    return arrival;
  }

  // How long a transfer would wait before it begins.
  std::int64_t backlog_ns(std::int64_t now_ns) const { return begin_ns(now_ns) - now_ns; }

 private:
  std::int64_t begin_ns(std::int64_t now_ns) const {
    std::int64_t begin = now_ns;
    for (const TransferLink* const link : links_) {
      if (link != nullptr) begin = std::max(begin, link->free_ns);
    }
    return begin;
  }

  std::array<TransferLink*, 2> links_;
  std::int64_t latency_ns_;
};

}  // namespace pagoda::replay

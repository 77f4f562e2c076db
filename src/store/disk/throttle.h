// Throttle makes a disk slow, for tests: no more than so many bytes a second, all threads together.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

namespace pagoda::store {

class Throttle {
 public:
  // 0: no limit.
  explicit Throttle(std::uint64_t bytes_per_s) : bytes_per_s_(bytes_per_s) {}

  // Sleeps until `bytes` more have passed at that rate.
  void pass(std::uint64_t bytes) {
    if (bytes_per_s_ == 0) return;
    const std::chrono::duration<double> length(static_cast<double>(bytes) /
                                               static_cast<double>(bytes_per_s_));
    std::chrono::steady_clock::time_point end;
    {
      const std::lock_guard lock(mutex_);
      const auto begin = std::max(free_at_, std::chrono::steady_clock::now());
      free_at_ = begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(length);
      end = free_at_;
    }
    std::this_thread::sleep_until(end);
  }

 private:
  const std::uint64_t bytes_per_s_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point free_at_;
};

}  // namespace pagoda::store

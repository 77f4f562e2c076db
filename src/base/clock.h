// Time is a dependency: programs take a Clock, tests drive a ManualClock.
#pragma once

#include <cstdint>

namespace pagoda {

class Clock {
 public:
  virtual ~Clock() = default;
  // Returns nanoseconds since an arbitrary fixed point; the value never goes back.
  virtual std::int64_t now_ns() const = 0;
};

class SteadyClock final : public Clock {
 public:
  std::int64_t now_ns() const override;
};

// A ManualClock stands still until it is advanced. It is not thread-safe: one test thread owns it.
class ManualClock final : public Clock {
 public:
  std::int64_t now_ns() const override { return now_ns_; }
  void advance_ns(std::int64_t ns);

 private:
  std::int64_t now_ns_ = 0;
};

inline double seconds_between(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-9;
}

}  // namespace pagoda

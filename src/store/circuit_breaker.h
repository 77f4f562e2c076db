// CircuitBreaker decides when to stop asking a device that fails, and when to try again: after so
// many failures in a row the device is off; after a while it is on again, and the next failure
// switches it off at once.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda::store {

class CircuitBreaker {
 public:
  CircuitBreaker(std::uint32_t failures_max, std::int64_t retry_after_ns)
      : failures_max_(failures_max), retry_after_ns_(retry_after_ns) {}

  bool is_on(std::int64_t now_ns) const {
    return failures_ < failures_max_ || now_ns >= failed_ns_ + retry_after_ns_;
  }
  // Returns the last failure, as long as no success followed it.
  const std::string& reason() const { return reason_; }

  void succeed() {
    failures_ = 0;
    reason_.clear();
  }
  void fail(std::int64_t now_ns, const std::string& reason) {
    if (failures_ < failures_max_) ++failures_;
    failed_ns_ = now_ns;
    reason_ = reason;
  }

 private:
  std::uint32_t failures_max_;
  std::int64_t retry_after_ns_;
  std::uint32_t failures_ = 0;
  std::int64_t failed_ns_ = 0;
  std::string reason_;
};

}  // namespace pagoda::store

#include "base/clock.h"

#include <chrono>

#include "base/assert.h"

namespace pagoda {

std::int64_t SteadyClock::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void ManualClock::advance_ns(std::int64_t ns) {
  ASSERT(ns >= 0, "time never goes back");
  now_ns_ += ns;
}

}  // namespace pagoda

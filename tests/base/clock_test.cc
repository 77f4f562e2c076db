#include "base/clock.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(Clock, ManualClockMovesOnlyWhenTold) {
  ManualClock clock;
  EXPECT_EQ(clock.now_ns(), 0);
  clock.advance_ns(1500);
  EXPECT_EQ(clock.now_ns(), 1500);
  EXPECT_DOUBLE_EQ(seconds_between(0, clock.now_ns()), 1.5e-6);
  EXPECT_DEATH(clock.advance_ns(-1), "time never goes back");
}

TEST(Clock, SteadyClockNeverGoesBack) {
  const SteadyClock clock;
  std::int64_t last = clock.now_ns();
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t now = clock.now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace pagoda

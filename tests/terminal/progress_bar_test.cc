#include "terminal/progress_bar.h"

#include <gtest/gtest.h>

namespace pagoda::terminal {
namespace {

// What is captured goes to a file.
TEST(ProgressBar, WhereStderrIsNoTerminalALineComesEveryFiveSeconds) {
  ManualClock clock;
  testing::internal::CaptureStderr();
  ProgressBar progress("with the cache", "tokens", clock);
  progress.show(1, 2000);
  clock.advance_ns(4'900'000'000);
  progress.show(2, 2000);
  clock.advance_ns(200'000'000);
  progress.show(1500, 2000);
  progress.show(1501, 2000);
  clock.advance_ns(5'000'000'000);
  progress.show(2000, 2000);
  progress.clear();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "with the cache: 1,500 / 2,000 tokens\nwith the cache: 2,000 / 2,000 tokens\n");
}

}  // namespace
}  // namespace pagoda::terminal

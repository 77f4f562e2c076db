#include "terminal/progress_bar.h"

#include <gtest/gtest.h>

namespace pagoda::terminal {
namespace {

// Captured text goes to a file.
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

TEST(ProgressBar, TheLastLineSaysWhereTheWorkEnded) {
  ManualClock clock;
  testing::internal::CaptureStderr();
  {
    ProgressBar progress("packing weights", "bytes", clock);
    clock.advance_ns(5'100'000'000);
    progress.show(209'664, 97'254'912);
    progress.show(97'254'912, 97'254'912);
    progress.clear();
    progress.clear();
  }
  {
    ProgressBar quick("prefill", "tokens", clock);
    quick.show(7, 7);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "packing weights: 209,664 / 97,254,912 bytes\n"
            "packing weights: 97,254,912 / 97,254,912 bytes\n");
}

TEST(ProgressBar, ALineIsNotRepeated) {
  ManualClock clock;
  testing::internal::CaptureStderr();
  ProgressBar progress("agents", "turns", clock);
  for (int seconds = 0; seconds < 20; ++seconds) {
    clock.advance_ns(1'000'000'000);
    progress.show(17, 18);
  }
  progress.clear();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "agents: 17 / 18 turns\n");
}

}  // namespace
}  // namespace pagoda::terminal

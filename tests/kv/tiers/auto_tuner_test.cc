#include "kv/tiers/auto_tuner.h"

#include <gtest/gtest.h>

namespace pagoda::kv {
namespace {

// Of so many turns, how many took the second way when it is `ratio` as fast as the first.
int second_ways(AutoTuner& way, double ratio, int turns) {
  int second = 0;
  for (int i = 0; i < turns; ++i) {
    const std::size_t chosen = way.choose();
    second += chosen == 1 ? 1 : 0;
    way.note(1000, chosen == 1 ? 1 / ratio : 1);
  }
  return second;
}

TEST(AutoTuner, IsTakenNearlyAlwaysAndTheOtherTriedNowAndThen) {
  for (const double ratio : {1.1, 2.0, 10.0}) {
    AutoTuner way;
    EXPECT_GE(second_ways(way, ratio, 320), 295) << ratio;
    AutoTuner reverse;
    const int second = second_ways(reverse, 1 / ratio, 320);
    EXPECT_LE(second, 25) << ratio;
    EXPECT_GE(second, 10) << ratio;
  }
}

TEST(AutoTuner, ChangesWhenTheOtherBecomesFaster) {
  AutoTuner way;
  second_ways(way, 4, 160);
  second_ways(way, 0.25, 160);
  EXPECT_LE(second_ways(way, 0.25, 160), 12);
  second_ways(way, 4, 160);
  EXPECT_GE(second_ways(way, 4, 160), 148);
}

TEST(AutoTuner, AClockThatStandsStillSaysNothing) {
  AutoTuner way;
  for (int i = 0; i < 8; ++i) {
    way.choose();
    way.note(1000, 0);
  }
  EXPECT_GE(second_ways(way, 2, 320), 280);
}

}  // namespace
}  // namespace pagoda::kv

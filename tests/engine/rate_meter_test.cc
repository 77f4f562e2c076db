#include "engine/rate_meter.h"

#include <gtest/gtest.h>

namespace pagoda::engine {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(RateMeter, KnowsNothingBeforeTheFirstUnit) {
  RateMeter meter;
  EXPECT_FALSE(meter.units_per_second());
  meter.begin(0);
  meter.end(5 * kMs, 0);  // a transfer that failed
  EXPECT_FALSE(meter.units_per_second());
}

TEST(RateMeter, CountsOnlyTheTimeInWhichSomethingWasOnItsWay) {
  RateMeter meter;
  meter.begin(0);
  meter.end(100 * kMs, 50);
  meter.begin(5'000 * kMs);  // nothing ran for long
  meter.end(5'100 * kMs, 50);
  EXPECT_NEAR(*meter.units_per_second(), 100 / 0.2, 1e-6);
  EXPECT_NEAR(meter.seconds_busy(), 0.2, 1e-9);
}

TEST(RateMeter, OverlappingWorkSharesItsTime) {
  RateMeter meter;
  meter.begin(0, 4);
  for (int i = 0; i < 4; ++i) meter.end(100 * kMs, 10);
  EXPECT_NEAR(*meter.units_per_second(), 40 / 0.1, 1e-6);
}

TEST(RateMeter, WhatIsToldLateCountsUntilItEnded) {
  RateMeter meter;
  meter.begin(0);
  meter.begin(100 * kMs);
  meter.end(50 * kMs, 10);  // ended before the second began, reported after it
  meter.end(200 * kMs, 10);
  EXPECT_NEAR(*meter.units_per_second(), 20 / 0.2, 1e-6);
  EXPECT_NEAR(meter.seconds_busy(), 0.2, 1e-9);
}

TEST(RateMeter, FollowsAChangeWithinSeconds) {
  RateMeter meter;
  meter.add(1000, 1);
  for (int i = 0; i < 10; ++i) meter.add(10, 1);
  EXPECT_LT(*meter.units_per_second(), 50);
  EXPECT_GE(*meter.units_per_second(), 10);
}

}  // namespace
}  // namespace pagoda::engine

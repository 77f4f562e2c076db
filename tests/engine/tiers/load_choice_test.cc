#include "engine/tiers/load_choice.h"

#include <gtest/gtest.h>

namespace pagoda::engine {
namespace {

// The load is 1,000 tokens in 10 MB: a second to compute.
LoadEstimate estimate() {
  return {.tokens_left = 1000, .bytes_left = 10'000'000, .tokens_per_second = 1000.0};
}

TEST(LoadChoice, TakesWhateverEndsFirst) {
  LoadEstimate fast = estimate();
  fast.bytes_per_second = 20e6;  // half a second
  EXPECT_EQ(load_or_recompute(LoadMode::kAuto, fast).choice, LoadChoice::kWait);
  EXPECT_NEAR(load_or_recompute(LoadMode::kAuto, fast).seconds_saved, 0.5, 1e-9);
  LoadEstimate slow = estimate();
  slow.bytes_per_second = 9e6;
  EXPECT_EQ(load_or_recompute(LoadMode::kAuto, slow).choice, LoadChoice::kCompute);
}

TEST(LoadChoice, AlwaysMeansAlways) {
  LoadEstimate slow = estimate();
  slow.bytes_per_second = 1;
  slow.silent_s = 1e6;
  EXPECT_EQ(load_or_recompute(LoadMode::kAlways, slow).choice, LoadChoice::kWait);
  slow.tokens_per_second.reset();
  EXPECT_EQ(load_or_recompute(LoadMode::kAlways, slow).choice, LoadChoice::kWait);
}

TEST(LoadChoice, ATierThatIsNotKnownYetGetsASmallPartOfTheTime) {
  LoadEstimate unknown = estimate();
  unknown.silent_s = 0.01;
  EXPECT_EQ(load_or_recompute(LoadMode::kAuto, unknown).choice, LoadChoice::kWait);
  unknown.silent_s = 0.05;  // 5 % of computing it
  EXPECT_EQ(load_or_recompute(LoadMode::kAuto, unknown).choice, LoadChoice::kCompute);
}

TEST(LoadChoice, ATierThatFallsSilentIsNotWaitedFor) {
  LoadEstimate silent = estimate();
  silent.bytes_per_second = 1e9;
  silent.bytes_running = 1'000'000;
  silent.silent_s = 0.001;
  EXPECT_EQ(load_or_recompute(LoadMode::kAuto, silent).choice, LoadChoice::kWait);
  silent.silent_s = 0.05;
  EXPECT_EQ(load_or_recompute(LoadMode::kAuto, silent).choice, LoadChoice::kCompute);
}

TEST(LoadChoice, AModelThatIsNotKnownYetTellsByComputing) {
  LoadEstimate unknown = estimate();
  unknown.bytes_per_second = 1e9;
  unknown.tokens_per_second.reset();
  EXPECT_EQ(load_or_recompute(LoadMode::kAuto, unknown).choice, LoadChoice::kCompute);
}

}  // namespace
}  // namespace pagoda::engine

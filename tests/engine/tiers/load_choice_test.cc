#include "engine/tiers/load_choice.h"

#include <gtest/gtest.h>

namespace pagoda::engine {
namespace {

// 1,000 tokens in 10 MB: a second to compute.
LoadOutlook outlook() {
  return {.tokens_left = 1000, .bytes_left = 10'000'000, .tokens_per_second = 1000.0};
}

TEST(LoadChoice, TakesWhateverEndsFirst) {
  LoadOutlook fast = outlook();
  fast.bytes_per_second = 20e6;  // half a second
  EXPECT_EQ(choose(LoadMode::kAuto, fast).choice, LoadChoice::kWait);
  EXPECT_NEAR(choose(LoadMode::kAuto, fast).seconds_saved, 0.5, 1e-9);
  LoadOutlook slow = outlook();
  slow.bytes_per_second = 9e6;
  EXPECT_EQ(choose(LoadMode::kAuto, slow).choice, LoadChoice::kCompute);
}

TEST(LoadChoice, AlwaysMeansAlways) {
  LoadOutlook slow = outlook();
  slow.bytes_per_second = 1;
  slow.silent_s = 1e6;
  EXPECT_EQ(choose(LoadMode::kAlways, slow).choice, LoadChoice::kWait);
  slow.tokens_per_second.reset();
  EXPECT_EQ(choose(LoadMode::kAlways, slow).choice, LoadChoice::kWait);
}

TEST(LoadChoice, ATierThatIsNotKnownYetGetsASmallPartOfTheTime) {
  LoadOutlook unknown = outlook();
  unknown.silent_s = 0.01;
  EXPECT_EQ(choose(LoadMode::kAuto, unknown).choice, LoadChoice::kWait);
  unknown.silent_s = 0.05;  // 5 % of computing it
  EXPECT_EQ(choose(LoadMode::kAuto, unknown).choice, LoadChoice::kCompute);
}

TEST(LoadChoice, ATierThatFallsSilentIsNotWaitedFor) {
  LoadOutlook silent = outlook();
  silent.bytes_per_second = 1e9;
  silent.bytes_running = 1'000'000;
  silent.silent_s = 0.001;
  EXPECT_EQ(choose(LoadMode::kAuto, silent).choice, LoadChoice::kWait);
  silent.silent_s = 0.05;
  EXPECT_EQ(choose(LoadMode::kAuto, silent).choice, LoadChoice::kCompute);
}

TEST(LoadChoice, AModelThatIsNotKnownYetTellsByComputing) {
  LoadOutlook unknown = outlook();
  unknown.bytes_per_second = 1e9;
  unknown.tokens_per_second.reset();
  EXPECT_EQ(choose(LoadMode::kAuto, unknown).choice, LoadChoice::kCompute);
}

}  // namespace
}  // namespace pagoda::engine

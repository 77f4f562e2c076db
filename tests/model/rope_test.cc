#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pagoda::model {
namespace {

struct Angles {
  std::vector<float> cosines;
  std::vector<float> sines;
};

Angles angles_at(const RopeTable& table, std::uint64_t position) {
  Angles angles{std::vector<float>(table.pairs()), std::vector<float>(table.pairs())};
  table.fill(position, angles.cosines.data(), angles.sines.data());
  return angles;
}

TEST(Rope, PairITurnsByBaseToTheMinusTwoIOverDims) {
  const RopeTable table({.dims = 4, .base = 100.0}, {});
  const Angles angles = angles_at(table, 3);
  EXPECT_FLOAT_EQ(angles.cosines[0], static_cast<float>(std::cos(3.0)));
  EXPECT_FLOAT_EQ(angles.sines[0], static_cast<float>(std::sin(3.0)));
  EXPECT_FLOAT_EQ(angles.cosines[1], static_cast<float>(std::cos(0.3)));
  EXPECT_FLOAT_EQ(angles.sines[1], static_cast<float>(std::sin(0.3)));
}

TEST(Rope, LinearScalingDividesPositionsByTheFactor) {
  const RopeConfig plain = {.dims = 8};
  RopeConfig linear = plain;
  linear.scaling = RopeScaling::kLinear;
  linear.factor = 4;
  EXPECT_EQ(angles_at(RopeTable(linear, {}), 40).cosines,
            angles_at(RopeTable(plain, {}), 10).cosines);
}

TEST(Rope, DivisorsSlowThePairTheyBelongTo) {
  const std::vector<float> divisors = {1.0f, 8.0f};
  const Angles slowed = angles_at(RopeTable({.dims = 4}, divisors), 8);
  const RopeTable plain({.dims = 4}, {});
  EXPECT_EQ(slowed.sines[0], angles_at(plain, 8).sines[0]);
  EXPECT_EQ(slowed.sines[1], angles_at(plain, 1).sines[1]);
}

TEST(Rope, FarPositionsKeepFullPrecision) {
  const Angles angles = angles_at(RopeTable({.dims = 2}, {}), 10'000'019);
  // Base 10000, pair 0: the angle is the position itself.
  EXPECT_FLOAT_EQ(angles.cosines[0], static_cast<float>(std::cos(10'000'019.0L)));
  EXPECT_FLOAT_EQ(angles.sines[0], static_cast<float>(std::sin(10'000'019.0L)));
}

}  // namespace
}  // namespace pagoda::model

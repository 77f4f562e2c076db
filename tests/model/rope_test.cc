#include "model/rope.h"
#include "test_data.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

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
  // With base 10000 the angle of pair 0 is the position itself.
  EXPECT_FLOAT_EQ(angles.cosines[0], static_cast<float>(std::cos(10'000'019.0L)));
  EXPECT_FLOAT_EQ(angles.sines[0], static_cast<float>(std::sin(10'000'019.0L)));
}

// A host that computes other bits must not share keys and values with hosts that compute these.
class BitsOfTables : public testing::Test {
 protected:
  static double double_of(std::istream& line) {
    std::uint64_t bits = 0;
    line >> std::hex >> bits >> std::dec;
    return std::bit_cast<double>(bits);
  }
  static float float_of(std::istream& line) {
    std::uint32_t bits = 0;
    line >> std::hex >> bits >> std::dec;
    return std::bit_cast<float>(bits);
  }
  static RopeConfig config_of(std::istream& line) {
    RopeConfig config;
    std::string kind;
    line >> kind;
    config.scaling = kind == "yarn"     ? RopeScaling::kYarn
                     : kind == "linear" ? RopeScaling::kLinear
                                        : RopeScaling::kNone;
    config.base = double_of(line);
    line >> config.dims;
    config.factor = double_of(line);
    line >> config.original_context;
    config.yarn_beta_fast = double_of(line);
    config.yarn_beta_slow = double_of(line);
    config.attention_factor = double_of(line);
    return config;
  }
};

TEST_F(BitsOfTables, AreThoseOfExactMathematicsOnEveryHost) {
  std::ifstream fixture(test_data() + "/rope/tables.txt");
  std::unique_ptr<RopeTable> table;
  std::string text;
  int rows = 0;
  for (std::string line_text; std::getline(fixture, line_text);) {
    std::istringstream line(line_text);
    std::string word;
    line >> word;
    if (word == "rope") {
      text = line_text;
      table = std::make_unique<RopeTable>(config_of(line), std::span<const float>());
      continue;
    }
    std::uint64_t position = 0;
    std::size_t pair = 0;
    line >> position >> pair;
    const float cosine = float_of(line);
    const float sine = float_of(line);
    ASSERT_TRUE(line) << line_text;
    const Angles angles = angles_at(*table, position);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(angles.cosines[pair]),
              std::bit_cast<std::uint32_t>(cosine))
        << text << "\n"
        << line_text;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(angles.sines[pair]), std::bit_cast<std::uint32_t>(sine))
        << text << "\n"
        << line_text;
    ++rows;
  }
  EXPECT_GT(rows, 1500);
}

}  // namespace
}  // namespace pagoda::model

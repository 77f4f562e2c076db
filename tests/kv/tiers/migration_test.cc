#include "kv/tiers/migration.h"

#include <gtest/gtest.h>

namespace pagoda::kv {
namespace {

std::vector<MigrationCandidate> candidates(std::uint32_t count) {
  std::vector<MigrationCandidate> list;
  for (std::uint32_t i = 0; i < count; ++i) {
    list.push_back({.block = BlockId(i), .stats = {.created = i, .last_use = 10 + i}});
  }
  return list;
}

std::vector<std::uint32_t> plan(const TierPressure& pressure,
                                const std::vector<MigrationCandidate>& list,
                                const MigrationOptions& options) {
  std::vector<std::uint32_t> blocks;
  for (const BlockId block : plan_migration(pressure, list, 100, options)) {
    blocks.push_back(block.value());
  }
  return blocks;
}

using Plan = std::vector<std::uint32_t>;

TEST(Migration, NothingMovesWhileEnoughIsFreeOrThereIsNoTier) {
  const MigrationOptions quarter = {.free_share_wanted = 0.25};
  EXPECT_EQ(plan({.blocks = 100, .blocks_free = 25, .slots = 9}, candidates(5), quarter), Plan{});
  EXPECT_EQ(plan({.blocks = 100, .blocks_free = 0, .slots = 0}, candidates(5), quarter), Plan{});
}

TEST(Migration, WhatWouldBeEvictedNextGoesFirstAndNoMoreThanIsEndangered) {
  const MigrationOptions quarter = {.free_share_wanted = 0.25};
  EXPECT_EQ(plan({.blocks = 100, .blocks_free = 23, .slots = 9}, candidates(5), quarter),
            (Plan{0, 1}));
}

TEST(Migration, WhatIsThereAlreadyIsNotMovedAgain) {
  std::vector<MigrationCandidate> list = candidates(4);
  list[1].in_tier = true;
  EXPECT_EQ(plan({.blocks = 100, .blocks_free = 0, .slots = 9}, list, {}), (Plan{0, 2, 3}));
}

TEST(Migration, RunningMovesAreBounded) {
  const MigrationOptions four = {.moves_running_max = 4};
  EXPECT_EQ(plan({.blocks = 100, .slots = 9, .moves_running = 2}, candidates(5), four),
            (Plan{0, 1}));
  EXPECT_EQ(plan({.blocks = 100, .slots = 9, .moves_running = 7}, candidates(5), four), Plan{});
}

TEST(Migration, HotPagesWait) {
  const MigrationOptions old = {.idle_ticks_min = 88};  // at tick 100: last used at 12 or before
  EXPECT_EQ(plan({.blocks = 100, .slots = 9}, candidates(5), old), (Plan{0, 1, 2}));
}

}  // namespace
}  // namespace pagoda::kv

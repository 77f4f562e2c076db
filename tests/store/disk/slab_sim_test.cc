#include "store/disk/slab_sim.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace pagoda::store {
namespace {

SlabSimOptions scenario(std::uint64_t seed) {
  SlabSimOptions options;
  options.seed = seed;
  options.page_bytes = 600 + seed % 7 * 900;  // one slot is one, two or more blocks of 4096
  options.block_tokens = 1 + static_cast<std::uint32_t>(seed % 9);
  options.slots = 2 + seed % 11;
  options.pages = 6 + seed % 17;
  options.is_encrypted = seed % 8 == 5;
  options.has_flips = seed % 4 == 3;
  if (seed % 2 == 1) options.faults.short_transfer = 0.1;
  if (seed % 5 == 1) options.faults.write_error = 0.05;
  if (seed % 5 == 2) options.faults.read_error = 0.05;
  if (seed % 5 == 3) options.faults.sync_error = 0.15;
  if (seed % 31 == 17) options.faults.is_full = true;
  return options;
}

TEST(SlabSim, WhatIsDurableSurvivesAndNothingElseIsTrusted) {
  const char* const only = std::getenv("PAGODA_SIM_SEED");
  const std::uint64_t first = only == nullptr ? 0 : std::strtoull(only, nullptr, 10);
  const std::uint64_t seeds = only == nullptr ? 2500 : 1;
  std::uint64_t crashes = 0;
  std::uint64_t checked = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    SlabSimOptions options = scenario(seed);
    options.is_trace = only != nullptr;
    SlabSim sim(options);
    ASSERT_EQ(sim.run(), "");
    crashes += sim.crashes;
    checked += sim.pages_durable_checked;
  }
  if (only != nullptr) return;
  EXPECT_GT(crashes, seeds) << "the test must crash";
  EXPECT_GT(checked, 4 * seeds) << "the test must find durable pages to check";
}

// The same steps crash at the first change of the disk, then at the second, and so on.
TEST(SlabSim, ACrashAtAnyChangeLosesNothingDurable) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SlabSimOptions options = scenario(1000 + seed * 4);
    options.faults = {};
    options.has_flips = false;
    options.steps = 60;
    options.crash_at = std::int64_t{1} << 40;
    SlabSim whole(options);
    ASSERT_EQ(whole.run(), "");
    ASSERT_GT(whole.changes(), 30u);
    for (std::uint64_t change = 0; change < whole.changes(); ++change) {
      options.crash_at = static_cast<std::int64_t>(change);
      SlabSim sim(options);
      ASSERT_EQ(sim.run(), "") << "crashed at change " << change;
      EXPECT_GE(sim.crashes, 1u);
    }
  }
}

}  // namespace
}  // namespace pagoda::store

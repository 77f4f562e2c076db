#include "kv/cache_sim.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace pagoda::kv {
namespace {

SimOptions scenario(std::uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  options.block_tokens = 1 + static_cast<std::uint32_t>(seed % 5);
  options.blocks = 12 + static_cast<std::uint32_t>(seed % 7) * 9;
  options.tenants = seed % 2 == 1;
  options.copies_out = seed / 2 % 3 > 0;
  if (options.copies_out) options.operations = 200;
  options.hash_blocks = seed / 6 % 2 == 1;
  options.event_ring = seed / 7 % 3 == 0 ? 0 : seed / 21 % 2 == 0 ? 32 : 1024;
  options.share = seed % 13 != 12;
  options.policy = eviction_policies()[seed / 4 % eviction_policies().size()];
  options.quota_blocks = seed / 3 % 3 == 2 ? 4 + seed % 11 : 0;
  options.retain_blocks = seed / 5 % 2 == 1 ? 2 + seed % 9 : 0;
  options.live_curve = seed % 17 == 3;
  options.eviction_records_max = seed % 3 == 0 ? 0 : static_cast<std::uint32_t>(seed % 50);
  switch (seed % 4) {
    case 1:
      options.groups = {{0}, {6}};
      break;
    case 2:
      options.groups = {{0}, {0}, {3}};
      break;
    case 3:
      options.groups = {{5}};
      break;
    default:
      break;
  }
  return options;
}

// Some requests keep a window of their tokens, most of them sinks beside it.
SimOptions bounded_scenario(std::uint64_t seed) {
  SimOptions options = scenario(seed);
  options.kv_policy = {.window = 1 + static_cast<std::uint32_t>(seed / 3 % 9),
                       .sinks = static_cast<std::uint32_t>(seed / 5 % 7)};
  return options;
}

// A pool so large that nothing is evicted: a match is exactly what the oracle says.
SimOptions exact_scenario(std::uint64_t seed) {
  SimOptions options = scenario(seed);
  options.exact = true;
  options.blocks = 2500;
  options.share = true;
  options.operations = 60;
  return options;
}

SimOptions exact_bounded_scenario(std::uint64_t seed) {
  SimOptions options = exact_scenario(seed);
  options.kv_policy = bounded_scenario(seed).kv_policy;
  return options;
}

// The shortest failing run of the same seed.
std::string shortest_failure(SimOptions options) {
  for (std::uint64_t operations = 1; operations <= options.operations; ++operations) {
    SimOptions shorter = options;
    shorter.operations = operations;
    const SimReport report = simulate(shorter);
    if (report.failure) return *report.failure;
  }
  return "not reproduced";
}

// Runs seeds 0 to seeds - 1, or the one that PAGODA_SEED names.
SimReport run_seeds(SimOptions (*options_of)(std::uint64_t seed), std::uint64_t seeds) {
  const char* const one = std::getenv("PAGODA_SEED");
  const std::uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  const std::uint64_t last = one != nullptr ? first + 1 : seeds;
  SimReport sum;
  for (std::uint64_t seed = first; seed < last && !sum.failure; ++seed) {
    const SimReport report = simulate(options_of(seed));
    if (report.failure) {
      sum.failure = shortest_failure(options_of(seed)) +
                    "again: PAGODA_SEED=" + std::to_string(seed) + " kv_sim_test";
    }
    sum.tokens_matched += report.tokens_matched;
    sum.blocks_evicted += report.blocks_evicted;
    sum.blocks_deduplicated += report.blocks_deduplicated;
    sum.refusals += report.refusals;
    sum.pages_out += report.pages_out;
    sum.hashes_verified += report.hashes_verified;
    sum.mirrors_compared += report.mirrors_compared;
    sum.snapshots += report.snapshots;
    sum.snapshots_that_mended += report.snapshots_that_mended;
    sum.clears_told += report.clears_told;
    sum.retained += report.retained;
    sum.retain_refused += report.retain_refused;
    sum.cancelled_with_room += report.cancelled_with_room;
    sum.cancelled_with_copies += report.cancelled_with_copies;
  }
  return sum;
}

bool all_seeds() { return std::getenv("PAGODA_SEED") == nullptr; }

TEST(CacheSim, EveryRowIsWhatItsTokensMakeIt) {
  const SimReport sum = run_seeds(scenario, 12'000);
  ASSERT_FALSE(sum.failure) << *sum.failure;
  if (!all_seeds()) return;
  // The runs reach what they are meant to reach.
  EXPECT_GT(sum.tokens_matched, 100'000u);
  EXPECT_GT(sum.blocks_evicted, 10'000u);
  EXPECT_GT(sum.blocks_deduplicated, 1'000u);
  EXPECT_GT(sum.refusals, 100u);
  EXPECT_GT(sum.pages_out, 100'000u);
  EXPECT_GT(sum.hashes_verified, 10'000u);
  EXPECT_GT(sum.mirrors_compared, 100'000u);
  EXPECT_GT(sum.snapshots, 10'000u);
  EXPECT_GT(sum.snapshots_that_mended, 1'000u);
  EXPECT_GT(sum.clears_told, 1'000u);
  EXPECT_GT(sum.retained, 1'000u);
  EXPECT_GT(sum.retain_refused, 1'000u);
  EXPECT_GT(sum.cancelled_with_room, 1'000u);
  EXPECT_GT(sum.cancelled_with_copies, 1'000u);
}

TEST(CacheSim, WithoutEvictionAMatchIsTheLongestThatTheLookupMaySee) {
  const SimReport sum = run_seeds(exact_scenario, 2'000);
  ASSERT_FALSE(sum.failure) << *sum.failure;
  if (!all_seeds()) return;
  EXPECT_GT(sum.tokens_matched, 20'000u);
  EXPECT_GT(sum.blocks_deduplicated, 500u);
}

TEST(CacheSim, EveryRowThatAPolicyKeepsIsWhatItsTokensMakeIt) {
  const SimReport sum = run_seeds(bounded_scenario, 6'000);
  ASSERT_FALSE(sum.failure) << *sum.failure;
  if (!all_seeds()) return;
  EXPECT_GT(sum.tokens_matched, 50'000u);
  EXPECT_GT(sum.blocks_evicted, 5'000u);
  EXPECT_GT(sum.refusals, 50u);
  EXPECT_GT(sum.hashes_verified, 5'000u);
}

TEST(CacheSim, UnderAPolicyAMatchIsTheLongestThatTheLookupMaySee) {
  const SimReport sum = run_seeds(exact_bounded_scenario, 1'000);
  ASSERT_FALSE(sum.failure) << *sum.failure;
}

// Operation by operation: what is matched, granted, refused, evicted and deduplicated.
TEST(CacheSim, TheLiveCurveChangesNothing) {
  std::uint64_t evicted = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SimOptions options = scenario(seed);
    options.live_curve = false;
    const SimReport without = simulate(options);
    options.live_curve = true;
    const SimReport with = simulate(options);
    ASSERT_FALSE(with.failure) << *with.failure;
    ASSERT_EQ(with.history, without.history) << seed;
    evicted += with.blocks_evicted;
  }
  EXPECT_GT(evicted, 1000u);
}

class Sabotaged : public testing::TestWithParam<Sabotage> {};

TEST_P(Sabotaged, IsFoundBySomeSeed) {
  int red = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimOptions options = scenario(seed);
    options.sabotage = GetParam();
    red += simulate(options).failure ? 1 : 0;
  }
  EXPECT_GT(red, 20) << "of 200 seeds";
}

INSTANTIATE_TEST_SUITE_P(Bugs, Sabotaged,
                         testing::Values(Sabotage::kStaleBlock, Sabotage::kForeignBlock,
                                         Sabotage::kShiftedRows, Sabotage::kTornCopy,
                                         Sabotage::kLeakedPin, Sabotage::kEarlyPin,
                                         Sabotage::kEarlyUnpin, Sabotage::kForeignRegion,
                                         Sabotage::kMissedEvent));

}  // namespace
}  // namespace pagoda::kv

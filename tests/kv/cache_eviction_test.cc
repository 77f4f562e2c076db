// Running out of blocks, and who makes room.
#include <gtest/gtest.h>

#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

TEST(OutOfBlocks, IsAValueAndChangesNothing) {
  CacheFixture fixture(CacheFixture::small(4));
  Sequence big = fixture.run(counting(1, 9));
  fixture.serve(counting(100, 4));
  ASSERT_EQ(fixture.cache().pool().blocks_free(), 0u);
  const auto outcome = fixture.cache().reserve(big, 17);
  const OutOfBlocks& shortage = std::get<OutOfBlocks>(outcome);
  EXPECT_EQ(shortage.blocks_needed, 2u);
  EXPECT_EQ(shortage.blocks_available, 1u);
  EXPECT_EQ(big.tokens_computed(), 9u);
  EXPECT_EQ(big.tokens_reserved(), 12u);
  EXPECT_EQ(fixture.cache().stats().blocks_evicted, 0u);
  EXPECT_EQ(fixture.matched(counting(100, 5)), 4u);
  EXPECT_TRUE(fixture.feed(big, counting(10, 4))) << "what fits still fits";
}

TEST(Evictions, AreCountedByTheirCause) {
  CacheOptions options = CacheFixture::small(8);
  options.quota_blocks_private = 3;
  options.retain_blocks_max = 2;
  CacheFixture fixture(options);
  const auto expect = [&](std::uint64_t room, std::uint64_t quota, std::uint64_t retained,
                          std::uint64_t reset) {
    EXPECT_EQ(fixture.cache().stats().blocks_evicted_by_cause,
              (EvictionCounts{room, quota, retained, reset}));
  };
  fixture.serve(fixture.tenant("a"), counting(1, 16));  // 4 blocks, one over the quota
  fixture.serve(counting(100, 20));                     // 5: one is missing
  expect(0, 1, 0, 0);
  fixture.serve(counting(200, 8));  // the quota is kept: used longest ago
  expect(2, 1, 0, 0);
  fixture.cache().clear();
  expect(2, 1, 0, 8);
  Sequence sequence = fixture.run(counting(1, 8));
  ASSERT_TRUE(fixture.cache().retain(sequence, {.tokens = 8, .until_ns = 10}).ok());
  fixture.cache().close(sequence);
  fixture.cache().advance_time(20);
  fixture.serve(counting(300, 32));
  expect(2, 1, 2, 8);
  EXPECT_EQ(fixture.cache().stats().blocks_evicted, 13u);
}

TEST(OutOfBlocks, WhenOpeningLeavesTheSourceOfTheCopyInPlace) {
  CacheFixture fixture(CacheFixture::small(2));
  Sequence big = fixture.run(counting(1, 4));
  fixture.serve(counting(100, 3));
  const Tokens prompt = counting(100, 5);
  const Match match = fixture.cache().match(fixture.everyone(), prompt);
  EXPECT_EQ(match.tokens, 3u);
  const auto outcome = fixture.cache().open(fixture.everyone(), match, prompt);
  EXPECT_EQ(std::get<OutOfBlocks>(outcome).blocks_needed, 2u) << "the copy, and its source stays";
  EXPECT_EQ(std::get<OutOfBlocks>(outcome).blocks_available, 1u);
  fixture.cache().check();
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 1u);
  EXPECT_EQ(fixture.matched(prompt), 3u);
}

// A request is cancelled while its copy is under way: the copy's source, the end of a chain, is
// read, and the chain before it is idle but cannot go.
TEST(OutOfBlocks, CountsNoBlockThatSomethingHeldStandsOn) {
  for (const std::vector<memory::AttentionSpec>& groups :
       std::vector<std::vector<memory::AttentionSpec>>{{{0}}, {{0}, {0}}, {{0}, {5}}, {{5}}}) {
    CacheOptions options = CacheFixture::small(static_cast<std::uint32_t>(6 * groups.size()));
    options.groups = groups;
    CacheFixture fixture(options);
    fixture.serve(counting(1, 16));
    const Tokens prompt = counting(1, 14) + tokens_of({90, 91});
    std::vector<Copy> copies;
    {
      const Match match = fixture.cache().match(fixture.everyone(), prompt);
      ASSERT_EQ(match.tokens, 14u);
      copies = std::get<Opened>(fixture.cache().open(fixture.everyone(), match, prompt)).copies;
    }
    fixture.cache().check();
    // Pages of the last block are read; those before it stay in full groups.
    std::uint64_t stay = groups.size();
    for (const memory::AttentionSpec& group : groups) stay += group.window == 0 ? 3 : 0;
    EXPECT_EQ(fixture.cache().blocks_available(), options.blocks - stay);

    Sequence big = fixture.open(tokens_of({500}));
    const std::uint64_t fits = (options.blocks - stay) / groups.size();
    const auto refused = fixture.cache().reserve(big, 4 * (fits + 1));
    EXPECT_GT(std::get<OutOfBlocks>(refused).blocks_needed,
              std::get<OutOfBlocks>(refused).blocks_available);
    EXPECT_EQ(fixture.cache().stats().blocks_evicted, 0u);
    EXPECT_EQ(fixture.matched(counting(1, 17)), 16u) << "nothing was lost";
    EXPECT_TRUE(std::holds_alternative<std::vector<Copy>>(fixture.cache().reserve(big, 4 * fits)));
    fixture.cache().check();
    fixture.finish(copies);
    EXPECT_EQ(fixture.cache().blocks_available(), options.blocks - fits * groups.size());
  }
}

TEST(OutOfBlocks, WhenOpeningIsNotAUseOfWhatMatched) {
  CacheFixture fixture(CacheFixture::small(4));
  fixture.serve(counting(100, 6));  // blocks 0 and 1, older
  fixture.serve(counting(200, 4));
  Sequence big = fixture.run(counting(1, 4));
  const Tokens prompt = counting(100, 7);
  const Match match = fixture.cache().match(fixture.everyone(), prompt);
  EXPECT_EQ(fixture.cache().blocks_needed(fixture.everyone(), match, match.tokens), 3u);
  ASSERT_TRUE(fixture.feed(big, counting(5, 4)));
  EXPECT_EQ(fixture.matched(prompt), 4u) << "the tail of what was used longest ago went";
  const Match less = fixture.cache().match(fixture.everyone(), prompt);
  EXPECT_EQ(fixture.cache().blocks_needed(fixture.everyone(), less, less.tokens), 1u)
      << "one is held, none taken";
  EXPECT_EQ(fixture.cache().blocks_needed(fixture.everyone(), less, 13), 4u);
}

TEST(Eviction, NeverTakesWhatSomeoneHolds) {
  CacheFixture fixture(CacheFixture::small(6));
  Sequence held = fixture.run(counting(1, 9));
  for (std::uint32_t i = 0; i < 20; ++i) fixture.serve(counting(1000 + 100 * i, 9));
  EXPECT_GT(fixture.cache().stats().blocks_evicted, 40u);
  EXPECT_EQ(fixture.matched(counting(1, 20)), 9u);
  fixture.cache().clear();
  fixture.cache().check();
  EXPECT_EQ(fixture.matched(counting(1, 20)), 9u);
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 3u);
}

TEST(Eviction, ByLruTakesTheTailOfAChainBeforeItsHead) {
  CacheFixture fixture(CacheFixture::small(4));
  fixture.serve(counting(1, 16));
  for (const std::uint64_t left : {12u, 8u, 4u, 0u}) {
    Sequence pressure = fixture.open(counting(500, 1));
    ASSERT_TRUE(
        std::holds_alternative<std::vector<Copy>>(fixture.cache().reserve(pressure, 16 - left)));
    fixture.cache().check();
    EXPECT_EQ(fixture.matched(counting(1, 17)), left);
  }
}

TEST(Eviction, ByLruTakesTheChainThatWasUsedLongestAgo) {
  CacheFixture fixture(CacheFixture::small(4));
  fixture.serve(counting(100, 8));
  fixture.serve(counting(200, 8));
  fixture.serve(counting(100, 9));  // again: 200 is older now; 9 tokens need a third block
  EXPECT_EQ(fixture.matched(counting(100, 9)), 8u);
  EXPECT_EQ(fixture.matched(counting(200, 9)), 4u);
}

TEST(Eviction, ByFifoTakesTheChainThatWasFilledFirst) {
  CacheOptions options = CacheFixture::small(4);
  options.policy = &fifo_policy();
  CacheFixture fixture(options);
  {
    // So that blocks are not filled in the order of their numbers.
    Sequence first = fixture.open(counting(1, 1));
    Sequence second = fixture.open(counting(1, 1));
    (void)fixture.cache().reserve(first, 8);
    (void)fixture.cache().reserve(second, 8);
    fixture.cache().close(first);
  }
  fixture.serve(counting(100, 8));
  fixture.serve(counting(200, 8));
  { const Sequence again = fixture.open(counting(100, 9)); }
  fixture.serve(counting(300, 4));
  EXPECT_EQ(fixture.matched(counting(100, 9)), 4u) << "used last, but filled first";
  EXPECT_EQ(fixture.matched(counting(200, 9)), 8u);
}

TEST(Eviction, TakesNoPageOfANodeWhileAnotherOfItsPagesIsRead) {
  CacheOptions options = CacheFixture::small(16);
  options.groups = {{0}, {0}};
  CacheFixture fixture(options);
  fixture.serve(counting(1, 3));
  const Tokens prompt = counting(1, 2) + tokens_of({90});
  std::vector<Copy> copies;
  {
    const Match match = fixture.cache().match(fixture.everyone(), prompt);
    copies = std::get<Opened>(fixture.cache().open(fixture.everyone(), match, prompt)).copies;
  }  // cancelled at once
  ASSERT_EQ(copies.size(), 2u);
  fixture.cache().copied(copies[0]);
  fixture.cache().clear();
  fixture.cache().check();
  EXPECT_EQ(fixture.matched(counting(1, 4)), 3u) << "the second page is still being copied";
  fixture.cache().copied(copies[1]);
  fixture.cache().clear();
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 16u);
}

TEST(Eviction, OfOneBranchLeavesTheTrunk) {
  CacheFixture fixture(CacheFixture::small(4));
  fixture.serve(counting(1, 4) + counting(100, 4));
  fixture.serve(counting(1, 4) + counting(200, 4));
  fixture.serve(counting(300, 8));
  EXPECT_EQ(fixture.matched(counting(1, 4) + counting(100, 5)), 4u);
  EXPECT_EQ(fixture.matched(counting(1, 4) + counting(200, 5)), 8u);
}

TEST(Clear, FreesEveryIdleBlock) {
  CacheOptions options = CacheFixture::small(16);
  options.groups = {{0}, {3}};
  CacheFixture fixture(options);
  fixture.serve(counting(1, 9));
  fixture.serve(counting(1, 5) + counting(100, 5));
  fixture.cache().clear();
  fixture.cache().check();
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 16u);
  EXPECT_EQ(fixture.cache().tree().nodes(), 1u) << "the root";
  EXPECT_EQ(fixture.matched(counting(1, 9)), 0u);
}

}  // namespace
}  // namespace pagoda::kv

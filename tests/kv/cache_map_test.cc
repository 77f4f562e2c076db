#include <gtest/gtest.h>

#include "kv/cache_fixture.h"
#include "kv/cache_snapshot.h"

namespace pagoda::kv {
namespace {

std::uint64_t cells_sum(const CacheMap& map, std::uint32_t BlockCell::*member) {
  std::uint64_t sum = 0;
  for (const BlockCell& cell : map.cells) sum += cell.*member;
  return sum;
}

std::vector<std::uint32_t> values(const Tokens& tokens) {
  std::vector<std::uint32_t> values;
  for (const TokenId token : tokens) values.push_back(token.value());
  return values;
}

class CacheMapTest : public testing::Test {
 protected:
  CacheFixture fixture_{CacheFixture::small(64)};
};

TEST_F(CacheMapTest, EveryBlockIsInOneCellOfItsState) {
  fixture_.serve(counting(0, 12));
  Sequence held = fixture_.run(counting(100, 8));
  const CacheMap map = build_map(fixture_.cache(), {});
  EXPECT_EQ(map.blocks_per_cell, 1u);
  ASSERT_EQ(map.cells.size(), 64u);
  EXPECT_EQ(cells_sum(map, &BlockCell::idle), 3u);
  EXPECT_EQ(cells_sum(map, &BlockCell::active), 2u);
  EXPECT_EQ(cells_sum(map, &BlockCell::free), 64u - 5u);
  fixture_.cache().close(held);
}

TEST_F(CacheMapTest, FewerCellsThanBlocksShareThem) {
  fixture_.serve(counting(0, 40));
  const CacheMap map = build_map(fixture_.cache(), {.cells_max = 10});
  EXPECT_EQ(map.blocks_per_cell, 7u);
  ASSERT_EQ(map.cells.size(), 10u);
  EXPECT_EQ(cells_sum(map, &BlockCell::idle), 10u);
  EXPECT_EQ(cells_sum(map, &BlockCell::free), 54u);
}

TEST_F(CacheMapTest, ABranchIsAStretchWithoutAForkAndTheLargestComeFirst) {
  fixture_.serve(counting(0, 8) + counting(50, 4));
  fixture_.serve(counting(0, 8) + counting(60, 8));
  fixture_.serve(counting(200, 4));
  const CacheMap map = build_map(fixture_.cache(), {});
  ASSERT_EQ(map.branches.size(), 4u);
  EXPECT_EQ(map.branches[0].tokens, values(counting(0, 8)));
  EXPECT_EQ(map.branches[0].level, 0u);
  EXPECT_EQ(map.branches[0].tokens_own, 8u);
  EXPECT_EQ(map.branches[0].blocks, 2u + 1u + 2u);
  EXPECT_EQ(map.branches[1].tokens, values(counting(60, 8)));
  EXPECT_EQ(map.branches[1].level, 1u);
  EXPECT_EQ(map.branches[1].blocks, 2u);
  EXPECT_EQ(map.branches[2].tokens, values(counting(50, 4)));
  EXPECT_EQ(map.branches[2].level, 1u);
  EXPECT_EQ(map.branches[3].tokens, values(counting(200, 4)));
  EXPECT_EQ(map.branches[3].level, 0u);
  EXPECT_EQ(map.nodes_seen, map.nodes);
}

TEST_F(CacheMapTest, TokensOfPrivateBranchesAreNotShown) {
  fixture_.serve(fixture_.tenant("salt"), counting(0, 12));
  const CacheMap map = build_map(fixture_.cache(), {});
  ASSERT_EQ(map.branches.size(), 1u);
  EXPECT_FALSE(map.branches[0].is_public);
  EXPECT_TRUE(map.branches[0].tokens.empty());
  EXPECT_EQ(map.branches[0].tokens_own, 12u);
  ASSERT_EQ(map.regions.size(), 1u);
  EXPECT_NE(map.regions[0].region, kPublic.value());
  EXPECT_EQ(map.regions[0].blocks, 3u);
}

// A public beginning with one private end has no fork, and is two branches all the same.
TEST_F(CacheMapTest, PrivateTokensBehindAPublicBeginningAreNotShown) {
  fixture_.serve(counting(0, 8));
  fixture_.serve(fixture_.tenant("salt"), counting(0, 8) + counting(70, 8));
  const CacheMap map = build_map(fixture_.cache(), {});
  ASSERT_EQ(map.branches.size(), 2u);
  EXPECT_EQ(map.branches[0].tokens, values(counting(0, 8)));
  EXPECT_EQ(map.branches[0].tokens_own, 8u);
  EXPECT_FALSE(map.branches[1].is_public);
  EXPECT_TRUE(map.branches[1].tokens.empty());
  EXPECT_EQ(map.branches[1].level, 1u);
}

TEST_F(CacheMapTest, LimitsBoundWhatIsListed) {
  for (std::uint32_t i = 0; i < 20; ++i) fixture_.serve(counting(100 * i, 8));
  const CacheMap map = build_map(fixture_.cache(), {.branches_max = 5, .tokens_max = 3});
  EXPECT_EQ(map.branches.size(), 5u);
  for (const BranchStats& branch : map.branches) EXPECT_EQ(branch.tokens.size(), 3u);
  const CacheMap few = build_map(fixture_.cache(), {.nodes_max = 6});
  EXPECT_LE(few.nodes_seen, 6u + 3u) << "a path is seen to its root";
  EXPECT_GE(few.nodes_seen, 6u);
}

// A cache of a million blocks costs what one of 16,384 does.
TEST(CacheMap, ItsWorkIsBounded) {
  CacheOptions options;
  options.blocks = 1 << 20;
  Cache cache(options);
  const CacheScope scope = cache.scope("model", "").value();
  for (std::uint32_t i = 0; i < 400; ++i) {
    const Tokens prompt = counting(1000 * i, 640);
    const Match match = cache.match(scope, prompt);
    auto opened = cache.open(scope, match, prompt);
    Sequence sequence = std::move(std::get<Opened>(opened).sequence);
    ASSERT_TRUE(std::holds_alternative<std::vector<Copy>>(cache.reserve(sequence, 640)));
    cache.commit(sequence, prompt);
    cache.close(sequence);
  }
  const MapLimits limits;
  const CacheMap map = build_map(cache, limits);
  EXPECT_LE(map.cells.size(), limits.cells_max);
  EXPECT_EQ(map.branches.size(), limits.branches_max);
  std::uint64_t looked_at = 0;
  for (const BlockCell& cell : map.cells) looked_at += cell.free + cell.active + cell.idle;
  EXPECT_LE(looked_at, limits.blocks_max);
  EXPECT_LE(map.nodes_seen, limits.nodes_max + 641u);
}

}  // namespace
}  // namespace pagoda::kv

#include "kv/blocks/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace pagoda::kv {
namespace {

constexpr std::array<BlockState, 4> kStates = {BlockState::kFree, BlockState::kFilling,
                                               BlockState::kSealed, BlockState::kIdle};

std::string name_of(BlockState state) {
  switch (state) {
    case BlockState::kFree:
      return "Free";
    case BlockState::kFilling:
      return "Filling";
    case BlockState::kSealed:
      return "Sealed";
    case BlockState::kIdle:
      return "Idle";
  }
  return "?";
}

// A block in the given state, held once where the state is a held one.
BlockId block_in(BlockPool& pool, BlockState state) {
  const BlockId block = pool.allocate().value();
  if (state == BlockState::kFree) pool.drop(block);
  if (state == BlockState::kSealed || state == BlockState::kIdle) pool.seal(block);
  if (state == BlockState::kIdle) pool.release(block, 1);
  return block;
}

// Everything that can be done to a known block, from which states, and what comes of it.
struct Arrow {
  const char* name;
  void (*go)(BlockPool& pool, BlockId block);
  std::vector<BlockState> from;
  BlockState to;
  std::uint32_t references;
};

const std::vector<Arrow>& arrows() {
  using enum BlockState;
  static const std::vector<Arrow> kArrows = {
      {"seal", [](BlockPool& p, BlockId b) { p.seal(b); }, {kFilling}, kSealed, 1},
      {"drop", [](BlockPool& p, BlockId b) { p.drop(b); }, {kFilling}, kFree, 0},
      {"park_partial", [](BlockPool& p, BlockId b) { p.park_partial(b, 7); }, {kFilling}, kIdle, 0},
      {"acquire", [](BlockPool& p, BlockId b) { p.acquire(b); }, {kIdle}, kSealed, 1},
      {"release", [](BlockPool& p, BlockId b) { p.release(b, 7); }, {kSealed}, kIdle, 0},
      {"evict", [](BlockPool& p, BlockId b) { p.evict(b); }, {kIdle}, kFree, 0},
  };
  return kArrows;
}

class EveryArrow : public testing::TestWithParam<std::size_t> {
 protected:
  const Arrow& arrow() const { return arrows()[GetParam()]; }
};

TEST_P(EveryArrow, LeadsWhereTheDiagramSays) {
  for (const BlockState from : arrow().from) {
    BlockPool pool(3);
    const BlockId block = block_in(pool, from);
    arrow().go(pool, block);
    EXPECT_EQ(pool.state(block), arrow().to) << name_of(pool.state(block));
    EXPECT_EQ(pool.references(block), arrow().references);
    EXPECT_EQ(pool.blocks_free(), arrow().to == BlockState::kFree ? 3u : 2u);
    EXPECT_EQ(pool.blocks_idle(), arrow().to == BlockState::kIdle ? 1u : 0u);
    if (arrow().to == BlockState::kIdle) {
      EXPECT_EQ(pool.last_use(block), 7u);
    }
    pool.check();
  }
}

TEST_P(EveryArrow, StopsTheProgramFromAnyOtherState) {
  for (const BlockState from : kStates) {
    const auto& allowed = arrow().from;
    if (std::find(allowed.begin(), allowed.end(), from) != allowed.end()) continue;
    BlockPool pool(3);
    const BlockId block = block_in(pool, from);
    EXPECT_DEATH(arrow().go(pool, block), "another state|others still")
        << arrow().name << " from " << name_of(from);
  }
}

// Whoever gives up the last reference must be the last holder.
TEST_P(EveryArrow, ThatGivesUpTheLastReferenceStopsWhenOthersHoldTheBlock) {
  if (arrow().references != 0 || arrow().from == std::vector{BlockState::kIdle}) return;
  BlockPool pool(3);
  const BlockId block = block_in(pool, arrow().from.front());
  pool.share(block);
  EXPECT_DEATH(arrow().go(pool, block), "others still") << arrow().name;
}

INSTANTIATE_TEST_SUITE_P(Diagram, EveryArrow, testing::Range<std::size_t>(0, 6),
                         [](const auto& test) { return std::string(arrows()[test.param].name); });

TEST(BlockPool, SharingCountsHoldersInEveryHeldStateAndInNoOther) {
  for (const BlockState state : kStates) {
    BlockPool pool(2);
    const BlockId block = block_in(pool, state);
    if (state == BlockState::kFree || state == BlockState::kIdle) {
      EXPECT_DEATH(pool.share(block), "held") << name_of(state);
      EXPECT_DEATH(pool.unshare(block, 7), "last holder") << name_of(state);
      continue;
    }
    pool.share(block);
    pool.share(block);
    EXPECT_EQ(pool.references(block), 3u);
    EXPECT_EQ(pool.state(block), state);
    pool.unshare(block, 5);
    pool.unshare(block, 6);
    EXPECT_EQ(pool.references(block), 1u);
    EXPECT_EQ(pool.last_use(block), 6u);
    EXPECT_DEATH(pool.unshare(block, 7), "last holder") << name_of(state);
    pool.check();
  }
}

TEST(BlockPool, SealingKeepsTheHolders) {
  BlockPool pool(2);
  const BlockId filled = pool.allocate().value();
  pool.share(filled);
  pool.seal(filled);
  EXPECT_EQ(pool.references(filled), 2u);
}

TEST(BlockPool, RunningOutIsAValue) {
  BlockPool pool(2);
  const BlockId first = pool.allocate().value();
  const BlockId second = pool.allocate().value();
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.allocate(), std::nullopt);
  EXPECT_EQ(pool.blocks_free(), 0u);
  pool.check();
  pool.drop(first);
  EXPECT_EQ(pool.allocate(), first);
}

TEST(BlockPool, AnOwnerAndAPlaceInTheQueueAreRememberedBesideTheState) {
  BlockPool pool(2);
  const BlockId block = pool.allocate().value();
  EXPECT_EQ(pool.owner(block), std::nullopt) << "a fresh block belongs to no node";
  pool.set_owner(block, NodeId(5));
  pool.set_queued(block, true);
  pool.share(block);
  pool.seal(block);
  pool.unshare(block, 2);
  pool.release(block, 3);
  EXPECT_EQ(pool.owner(block), NodeId(5));
  EXPECT_TRUE(pool.queued(block));
  EXPECT_EQ(pool.references(block), 0u);
  pool.set_queued(block, false);
  EXPECT_FALSE(pool.queued(block));
  EXPECT_EQ(pool.state(block), BlockState::kIdle);
  pool.evict(block);
  EXPECT_DEATH(pool.owner(block), "no owner");
  EXPECT_DEATH(pool.set_owner(block, NodeId(1)), "no owner");
  EXPECT_EQ(pool.allocate(), block);
  EXPECT_EQ(pool.owner(block), std::nullopt) << "the last life's node is forgotten";
}

TEST(BlockPool, HasABlock) { EXPECT_DEATH(BlockPool(0), "1 to"); }

// Random steps of many blocks against a map from block to state.
TEST(BlockPool, AgreesWithANaiveReferenceOverRandomSteps) {
  constexpr std::uint32_t kBlocks = 40;
  BlockPool pool(kBlocks);
  std::map<BlockId, BlockState> held;  // all that is not free
  std::uint64_t draws = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t dice = random_bits(3, 0, draws++);
    if (dice % 3 == 0) {
      const auto fresh = pool.allocate();
      ASSERT_EQ(fresh.has_value(), held.size() < kBlocks);
      if (fresh) {
        ASSERT_FALSE(held.contains(*fresh)) << "a block is given to one taker at a time";
        held[*fresh] = BlockState::kFilling;
      }
    } else if (!held.empty()) {
      const auto at = std::next(held.begin(), static_cast<std::ptrdiff_t>(dice / 8 % held.size()));
      const Arrow& arrow = arrows()[random_bits(3, 1, draws++) % arrows().size()];
      if (arrow.from.front() != at->second) continue;
      arrow.go(pool, at->first);
      at->second = arrow.to;
      if (arrow.to == BlockState::kFree) held.erase(at);
    }
    pool.check();
    ASSERT_EQ(pool.blocks_free(), kBlocks - held.size());
    for (const auto& [block, state] : held) ASSERT_EQ(pool.state(block), state);
  }
}

TEST(BlockPool, AMillionBlocksWorkAsAThousandDo) {
  constexpr std::uint32_t kBlocks = 1'000'000;
  BlockPool pool(kBlocks);
  std::vector<bool> seen(kBlocks, false);
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    const BlockId block = pool.allocate().value();
    ASSERT_FALSE(seen[block.value()]);
    seen[block.value()] = true;
    pool.seal(block);
  }
  EXPECT_EQ(pool.allocate(), std::nullopt);
  for (std::uint32_t i = 0; i < kBlocks; ++i) pool.release(BlockId(i), i + 1);
  EXPECT_EQ(pool.blocks_idle(), kBlocks);
  EXPECT_EQ(pool.last_use(BlockId(999'999)), 1'000'000u);
  pool.check();
  for (std::uint32_t i = 0; i < kBlocks; i += 2) pool.evict(BlockId(i));
  EXPECT_EQ(pool.blocks_free(), kBlocks / 2);
  pool.check();
}

}  // namespace
}  // namespace pagoda::kv

#include "sched/block_demand.h"

#include <gtest/gtest.h>

#include <vector>

#include "sched/sequence_task.h"

namespace pagoda::sched {
namespace {

using kv::memory::AttentionSpec;

TEST(BlockDemand, OfFullGroupsIsEveryBlockOfEveryGroup) {
  const std::vector<AttentionSpec> groups = {{}, {}};
  const BlockDemand demand = {.block_tokens = 16, .chunk_tokens_max = 512};
  EXPECT_EQ(demand.blocks_at_peak(groups, 1), 2u);
  EXPECT_EQ(demand.blocks_at_peak(groups, 16), 2u);
  EXPECT_EQ(demand.blocks_at_peak(groups, 17), 4u);
}

TEST(BlockDemand, OfAWindowIsBoundedByWindowAndChunk) {
  const std::vector<AttentionSpec> groups = {{.window = 33}};
  const BlockDemand demand = {.block_tokens = 16, .chunk_tokens_max = 16};
  EXPECT_EQ(demand.blocks_at_peak(groups, 16), 1u);
  // The group keeps 32 tokens before the chunk and the chunk's 16 tokens: 3 blocks, and one more
  // when both ends lie inside a block.
  EXPECT_EQ(demand.blocks_at_peak(groups, 100000), 4u);
}

TEST(BlockDemand, OfSinksIsAddedToTheWindow) {
  const std::vector<AttentionSpec> groups = {{.window = 33, .sinks = 17}};
  const BlockDemand demand = {.block_tokens = 16, .chunk_tokens_max = 16};
  EXPECT_EQ(demand.blocks_at_peak(groups, 16), 1u);
  EXPECT_EQ(demand.blocks_at_peak(groups, 5 * 16), 5u) << "no more than there are";
  EXPECT_EQ(demand.blocks_at_peak(groups, 100000), 4u + 2u);
}

// Only full groups drop pages: windows are those of the whole sequence.
TEST(BlockDemand, OfDroppedPagesIsWhatFullGroupsHold) {
  const std::vector<AttentionSpec> groups = {{}, {.window = 100}};
  const BlockDemand demand = {.block_tokens = 16, .chunk_tokens_max = 16};
  EXPECT_EQ(demand.blocks_at_peak(groups, 1000, 40), 3u + 9u);
  EXPECT_EQ(demand.blocks_at_peak(groups, 1000, 1000), demand.blocks_at_peak(groups, 1000));
}

// Tokens that are computed together see the same pages.
TEST(PageDrops, BoundWhatIsComputedAtOnce) {
  SequenceTask task;
  task.tokens.resize(100);
  task.tokens_max = 200;
  EXPECT_EQ(task.tokens_behind(0), 100u);
  task.drops = PageDrops{kv::KvPolicy::parse("h2o:32+8").value(), 50, 16};
  EXPECT_EQ(task.tokens_behind(0), 50u) << "up to the end of the prompt";
  EXPECT_EQ(task.tokens_behind(50), 15u) << "two blocks are gone: one more at 65";
  EXPECT_EQ(task.tokens_behind(65), 16u);
  EXPECT_EQ(task.tokens_behind(97), 3u);
  EXPECT_EQ(task.tokens_held_max(100), 50u);
  EXPECT_EQ(task.tokens_held_max(40), 40u);
  task.drops->policy = kv::KvPolicy::parse("snapkv:32+8").value();
  EXPECT_EQ(task.tokens_behind(10), 40u);
  EXPECT_EQ(task.tokens_behind(50), 50u) << "nothing more is dropped";
  // Behind the prompt what was launched is computed before anything else is.
  task.tokens_launched = 50;
  EXPECT_TRUE(task.awaits_page_drop());
  EXPECT_EQ(task.tokens_behind(), 0u);
}

TEST(BlockDemand, TellsWhatFitsAPoolAlone) {
  const std::vector<AttentionSpec> groups = {{}, {}};
  const BlockDemand demand = {.block_tokens = 16, .chunk_tokens_max = 16};
  // Ten blocks, two of which a match may be copied from: four blocks of each group.
  EXPECT_EQ(demand.tokens_alone(groups, 1000, 10), 64u);
  EXPECT_EQ(demand.tokens_alone(groups, 50, 10), 50u);
  // Without an end: window - 1 + 16 tokens in three blocks beside one for either end inside a
  // block, and one less for sinks.
  const std::uint64_t kept = demand.bounded_tokens_alone(groups, 1000, 10);
  const std::vector<AttentionSpec> bounded = {
      {.window = static_cast<std::uint32_t>(kept) - 1, .sinks = 1},
      {.window = static_cast<std::uint32_t>(kept) - 1, .sinks = 1}};
  EXPECT_LE(demand.blocks_alone(bounded, 1u << 30), 10u);
  EXPECT_EQ(kept, 17u);
  EXPECT_EQ(demand.bounded_tokens_alone(groups, 1000, 5), 0u) << "no window is small enough";
}

}  // namespace
}  // namespace pagoda::sched

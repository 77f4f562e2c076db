#include "sched/block_demand.h"

#include <gtest/gtest.h>

#include <vector>

namespace pagoda::sched {
namespace {

using kv::memory::AttentionSpec;

TEST(BlockDemand, OfFullGroupsIsEveryBlockOfEveryGroup) {
  const std::vector<AttentionSpec> groups = {{}, {}};
  const BlockDemand demand = {.groups = groups, .block_tokens = 16, .chunk_tokens_max = 512};
  EXPECT_EQ(demand.blocks_at_peak(1), 2u);
  EXPECT_EQ(demand.blocks_at_peak(16), 2u);
  EXPECT_EQ(demand.blocks_at_peak(17), 4u);
}

TEST(BlockDemand, OfAWindowIsBoundedByWindowAndChunk) {
  const std::vector<AttentionSpec> groups = {{.window = 33}};
  const BlockDemand demand = {.groups = groups, .block_tokens = 16, .chunk_tokens_max = 16};
  EXPECT_EQ(demand.blocks_at_peak(16), 1u);
  // The group keeps 32 tokens before the chunk and the chunk's 16 tokens: 3 blocks, and one more
  // when both ends lie inside a block.
  EXPECT_EQ(demand.blocks_at_peak(100000), 4u);
}

}  // namespace
}  // namespace pagoda::sched

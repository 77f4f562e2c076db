#include "kv/blocks/block_pool.h"

#include "base/assert.h"

namespace pagoda::kv {

BlockPool::BlockPool(std::uint32_t blocks) : records_(blocks), pins_(blocks, 0) {
  ASSERT(blocks > 0 && blocks < kNone, "a pool has 1 to 2^32 - 2 blocks");
  first_free_.fill(kNone);
  for (std::uint32_t block = blocks; block-- > 0;) give_free(BlockId(block));
}

void BlockPool::check() const {
  std::uint32_t free = 0;
  std::uint32_t idle = 0;
  for (std::uint32_t i = 0; i < blocks(); ++i) {
    const BlockId block(i);
    const bool held = state(block) == BlockState::kFilling || state(block) == BlockState::kSealed;
    ASSERT(held == (references(block) > 0), "B1: held blocks and only they have references");
    free += state(block) == BlockState::kFree ? 1 : 0;
    idle += state(block) == BlockState::kIdle ? 1 : 0;
  }
  ASSERT(free == blocks_free_, "B2: the count of free blocks is true");
  ASSERT(idle == blocks_idle_, "B3: the count of idle blocks is true");
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t expected = (free + kLanes - 1 - lane) / kLanes;
    std::uint32_t listed = 0;
    for (std::uint32_t i = first_free_[lane]; i != kNone; i = records_[i].link) {
      ASSERT(state(BlockId(i)) == BlockState::kFree, "B4: the free lists hold free blocks");
      ASSERT(++listed <= expected, "B4: a free list ends");
    }
    ASSERT(listed == expected, "B4: the free lists hold every free block");
  }
}

}  // namespace pagoda::kv

#include "kv/blocks/block_pool.h"

#include "base/assert.h"

namespace pagoda::kv {

BlockPool::BlockPool(std::uint32_t blocks)
    : words_(blocks, 0), links_(blocks, kNone), last_use_(blocks, 0), blocks_free_(blocks) {
  ASSERT(blocks > 0 && blocks < kNone, "a pool has 1 to 2^32 - 2 blocks");
  for (std::uint32_t block = blocks; block-- > 0;) {
    links_[block] = first_free_;
    first_free_ = block;
  }
}

void BlockPool::check() const {
  std::uint32_t free = 0;
  std::uint32_t idle = 0;
  for (std::uint32_t i = 0; i < blocks(); ++i) {
    const BlockId block(i);
    const bool held = state(block) == BlockState::kFilling ||
                      state(block) == BlockState::kLoading || state(block) == BlockState::kSealed;
    ASSERT(held == (references(block) > 0), "B1: held blocks and only they have references");
    free += state(block) == BlockState::kFree ? 1 : 0;
    idle += state(block) == BlockState::kIdle ? 1 : 0;
  }
  ASSERT(free == blocks_free_, "B2: the count of free blocks is true");
  ASSERT(idle == blocks_idle_, "B3: the count of idle blocks is true");
  std::uint32_t listed = 0;
  for (std::uint32_t i = first_free_; i != kNone; i = links_[i]) {
    ASSERT(state(BlockId(i)) == BlockState::kFree, "B4: the free list holds free blocks");
    ASSERT(++listed <= free, "B4: the free list ends");
  }
  ASSERT(listed == free, "B4: the free list holds every free block");
}

}  // namespace pagoda::kv

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

void BlockPool::set_state(BlockId block, BlockState from, BlockState to, std::uint32_t references) {
  ASSERT(state(block) == from, "the block is in another state");
  words_[block.value()] =
      static_cast<std::uint32_t>(to) << kStateShift | (word(block) & kQueuedBit) | references;
}

std::optional<BlockId> BlockPool::take_free(BlockState state) {
  if (first_free_ == kNone) return std::nullopt;
  const BlockId block(first_free_);
  first_free_ = links_[block.value()];
  links_[block.value()] = kNone;
  --blocks_free_;
  set_state(block, BlockState::kFree, state, 1);
  return block;
}

void BlockPool::give_free(BlockId block) {
  links_[block.value()] = first_free_;
  first_free_ = block.value();
  ++blocks_free_;
}

std::optional<BlockId> BlockPool::fill() { return take_free(BlockState::kFilling); }

void BlockPool::seal(BlockId block) {
  set_state(block, BlockState::kFilling, BlockState::kSealed, references(block));
}

void BlockPool::drop(BlockId block) {
  ASSERT(references(block) == 1, "others still hold the block");
  set_state(block, BlockState::kFilling, BlockState::kFree, 0);
  give_free(block);
}

void BlockPool::leave_open(BlockId block, Tick now) {
  ASSERT(references(block) == 1, "others still hold the block");
  set_state(block, BlockState::kFilling, BlockState::kIdle, 0);
  last_use_[block.value()] = now;
  ++blocks_idle_;
}

std::optional<BlockId> BlockPool::load() { return take_free(BlockState::kLoading); }

void BlockPool::loaded(BlockId block) {
  set_state(block, BlockState::kLoading, BlockState::kSealed, references(block));
}

void BlockPool::abandon(BlockId block) {
  ASSERT(references(block) == 1, "others still wait for the block");
  set_state(block, BlockState::kLoading, BlockState::kFree, 0);
  give_free(block);
}

void BlockPool::share(BlockId block) {
  ASSERT(references(block) > 0 && references(block) < kReferencesMask, "held, and not too often");
  ++words_[block.value()];
}

void BlockPool::unshare(BlockId block) {
  ASSERT(references(block) > 1, "the last holder rests, drops or leaves the block");
  --words_[block.value()];
}

void BlockPool::wake(BlockId block) {
  set_state(block, BlockState::kIdle, BlockState::kSealed, 1);
  --blocks_idle_;
}

void BlockPool::rest(BlockId block, Tick now) {
  ASSERT(references(block) == 1, "others still hold the block");
  set_state(block, BlockState::kSealed, BlockState::kIdle, 0);
  last_use_[block.value()] = now;
  ++blocks_idle_;
}

void BlockPool::evict(BlockId block) {
  set_state(block, BlockState::kIdle, BlockState::kFree, 0);
  --blocks_idle_;
  give_free(block);
}

std::optional<NodeId> BlockPool::owner(BlockId block) const {
  ASSERT(state(block) != BlockState::kFree, "a free block has no owner");
  const std::uint32_t link = links_[block.value()];
  if (link == kNone) return std::nullopt;
  return NodeId(link);
}

void BlockPool::set_owner(BlockId block, std::optional<NodeId> node) {
  ASSERT(state(block) != BlockState::kFree, "a free block has no owner");
  links_[block.value()] = node ? node->value() : kNone;
}

void BlockPool::set_queued(BlockId block, bool queued) {
  std::uint32_t& bits = words_[block.value()];
  bits = queued ? bits | kQueuedBit : bits & ~kQueuedBit;
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

// Which blocks exist, who holds them, and in which state they are.
//
//            fill                seal              rest
//   Free ------------> Filling --------> Sealed <--------> Idle
//    ^ ^                 | |              ^         wake     | ^
//    | +---- drop -------+ +----------- leave_open ----------|-+
//    |                                    |                  |
//    +---- abandon ---- Loading -- loaded +                  |
//    +------------------------- evict -----------------------+
//
// Free     nobody's; its bytes mean nothing
// Filling  one holder writes rows into it
// Loading  its bytes are on their way from another tier
// Sealed   immutable and held by someone (references > 0)
// Idle     immutable or an open leaf nobody holds: reusable until evicted
//
// One function per arrow; a call from another state is a bug and stops the
// program. References are counted here: a holder is a sequence, or a copy in
// flight that pins its source. Metadata is kept in arrays of 16 bytes a block
// in all; free blocks are an intrusive list. Nothing is linear in the number of
// blocks but the constructor and check().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "kv/ids.h"

namespace pagoda::kv {

enum class BlockState : std::uint8_t { kFree, kFilling, kLoading, kSealed, kIdle };

class BlockPool {
 public:
  explicit BlockPool(std::uint32_t blocks);

  std::uint32_t blocks() const { return static_cast<std::uint32_t>(words_.size()); }
  std::uint32_t blocks_free() const { return blocks_free_; }
  std::uint32_t blocks_idle() const { return blocks_idle_; }
  BlockState state(BlockId block) const {
    return static_cast<BlockState>(word(block) >> kStateShift);
  }
  std::uint32_t references(BlockId block) const { return word(block) & kReferencesMask; }

  // Free -> Filling, one reference; nothing when no block is free.
  std::optional<BlockId> fill();
  // Filling -> Sealed
  void seal(BlockId block);
  // Filling -> Free, giving up the last reference
  void drop(BlockId block);
  // Filling -> Idle, giving up the last reference: an open leaf stays behind
  void leave_open(BlockId block, Tick now);

  // Free -> Loading, one reference; nothing when no block is free.
  std::optional<BlockId> load();
  // Loading -> Sealed
  void loaded(BlockId block);
  // Loading -> Free
  void abandon(BlockId block);

  // Another holder of a block that is Filling or Sealed.
  void share(BlockId block);
  // One holder less of a block that has others.
  void unshare(BlockId block);
  // Idle -> Sealed, one reference
  void wake(BlockId block);
  // Sealed -> Idle, giving up the last reference
  void rest(BlockId block, Tick now);
  // Idle -> Free
  void evict(BlockId block);

  // When an Idle block was last held.
  Tick last_use(BlockId block) const { return last_use_[block.value()]; }

  // The node that a block belongs to, if any; the pool only remembers it.
  std::optional<NodeId> owner(BlockId block) const;
  void set_owner(BlockId block, std::optional<NodeId> node);

  // Is the block's place in the eviction queue taken? Kept here to keep
  // metadata together.
  bool queued(BlockId block) const { return (word(block) & kQueuedBit) != 0; }
  void set_queued(BlockId block, bool queued);

  // Stops the program when an invariant (README: B1 to B4) does not hold.
  // Linear.
  void check() const;

 private:
  static constexpr std::uint32_t kStateShift = 29;
  static constexpr std::uint32_t kQueuedBit = 1u << 28;
  static constexpr std::uint32_t kReferencesMask = kQueuedBit - 1;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t word(BlockId block) const { return words_[block.value()]; }
  void set_state(BlockId block, BlockState from, BlockState to, std::uint32_t references);
  std::optional<BlockId> take_free(BlockState state);
  void give_free(BlockId block);

  std::vector<std::uint32_t> words_;  // state (3 bits), queued (1), references (28)
  std::vector<std::uint32_t> links_;  // Free: the next free block; else the owner node; or kNone
  std::vector<Tick> last_use_;
  std::uint32_t first_free_ = kNone;
  std::uint32_t blocks_free_ = 0;
  std::uint32_t blocks_idle_ = 0;
};

// Inline: they take a few nanoseconds, and an std::optional that crosses a call
// costs as much again.

inline void BlockPool::set_state(BlockId block, BlockState from, BlockState to,
                                 std::uint32_t references) {
  ASSERT(state(block) == from, "the block is in another state");
  words_[block.value()] =
      static_cast<std::uint32_t>(to) << kStateShift | (word(block) & kQueuedBit) | references;
}

inline std::optional<BlockId> BlockPool::take_free(BlockState state) {
  if (first_free_ == kNone) return std::nullopt;
  const BlockId block(first_free_);
  first_free_ = links_[block.value()];
  links_[block.value()] = kNone;
  --blocks_free_;
  set_state(block, BlockState::kFree, state, 1);
  return block;
}

inline void BlockPool::give_free(BlockId block) {
  links_[block.value()] = first_free_;
  first_free_ = block.value();
  ++blocks_free_;
}

inline std::optional<BlockId> BlockPool::fill() { return take_free(BlockState::kFilling); }

inline void BlockPool::seal(BlockId block) {
  set_state(block, BlockState::kFilling, BlockState::kSealed, references(block));
}

inline void BlockPool::drop(BlockId block) {
  ASSERT(references(block) == 1, "others still hold the block");
  set_state(block, BlockState::kFilling, BlockState::kFree, 0);
  give_free(block);
}

inline void BlockPool::leave_open(BlockId block, Tick now) {
  ASSERT(references(block) == 1, "others still hold the block");
  set_state(block, BlockState::kFilling, BlockState::kIdle, 0);
  last_use_[block.value()] = now;
  ++blocks_idle_;
}

inline std::optional<BlockId> BlockPool::load() { return take_free(BlockState::kLoading); }

inline void BlockPool::loaded(BlockId block) {
  set_state(block, BlockState::kLoading, BlockState::kSealed, references(block));
}

inline void BlockPool::abandon(BlockId block) {
  ASSERT(references(block) == 1, "others still wait for the block");
  set_state(block, BlockState::kLoading, BlockState::kFree, 0);
  give_free(block);
}

inline void BlockPool::share(BlockId block) {
  ASSERT(references(block) > 0 && references(block) < kReferencesMask, "held, and not too often");
  ++words_[block.value()];
}

inline void BlockPool::unshare(BlockId block) {
  ASSERT(references(block) > 1, "the last holder rests, drops or leaves the block");
  --words_[block.value()];
}

inline void BlockPool::wake(BlockId block) {
  set_state(block, BlockState::kIdle, BlockState::kSealed, 1);
  --blocks_idle_;
}

inline void BlockPool::rest(BlockId block, Tick now) {
  ASSERT(references(block) == 1, "others still hold the block");
  set_state(block, BlockState::kSealed, BlockState::kIdle, 0);
  last_use_[block.value()] = now;
  ++blocks_idle_;
}

inline void BlockPool::evict(BlockId block) {
  set_state(block, BlockState::kIdle, BlockState::kFree, 0);
  --blocks_idle_;
  give_free(block);
}

inline std::optional<NodeId> BlockPool::owner(BlockId block) const {
  ASSERT(state(block) != BlockState::kFree, "a free block has no owner");
  const std::uint32_t link = links_[block.value()];
  if (link == kNone) return std::nullopt;
  return NodeId(link);
}

inline void BlockPool::set_owner(BlockId block, std::optional<NodeId> node) {
  ASSERT(state(block) != BlockState::kFree, "a free block has no owner");
  links_[block.value()] = node ? node->value() : kNone;
}

inline void BlockPool::set_queued(BlockId block, bool queued) {
  std::uint32_t& bits = words_[block.value()];
  bits = queued ? bits | kQueuedBit : bits & ~kQueuedBit;
}

}  // namespace pagoda::kv

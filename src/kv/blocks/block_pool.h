// The pool knows which blocks exist, who holds them and which state each is in.
//
//          allocate              seal            release
//   Free ------------> Filling --------> Sealed <--------> Idle
//    ^ ^                 | |                      acquire    | ^
//    | +---- drop -------+ +---------- park_partial ---------|-+
//    +------------------------- evict -----------------------+
//
// Free     nobody's; its bytes mean nothing
// Filling  one holder writes rows into it, computed or from a store outside
// Sealed   immutable and held by someone (references > 0)
// Idle     immutable or a partial block nobody holds: reusable until evicted
//
// One function per arrow; a call from another state is a bug and stops the program. References are
// counted here: a holder is a sequence, or a copy in flight that pins its source. Nothing is linear
// in the number of blocks but the constructor and check().
//
// A block's metadata is one record of 16 bytes. Free blocks are a stack, linked through the records
// of every eighth: eight lists used in turn, so that taking blocks whose records are in no
// processor cache waits for eight of them at a time instead of one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/large_array.h"
#include "kv/ids.h"

namespace pagoda::kv {

enum class BlockState : std::uint8_t { kFree, kFilling, kSealed, kIdle };

class BlockPool {
 public:
  explicit BlockPool(std::uint32_t blocks);

  std::uint32_t blocks() const { return static_cast<std::uint32_t>(records_.size()); }
  std::uint32_t blocks_free() const { return blocks_free_; }
  std::uint32_t blocks_idle() const { return blocks_idle_; }
  BlockState state(BlockId block) const {
    return static_cast<BlockState>(word(block) >> kStateShift);
  }
  std::uint32_t references(BlockId block) const { return word(block) & kReferencesMask; }

  // Free -> Filling, one reference; nothing when no block is free.
  std::optional<BlockId> allocate();
  // Filling -> Sealed
  void seal(BlockId block);
  // Filling -> Free, giving up the last reference
  void drop(BlockId block);
  // Filling -> Idle, giving up the last reference: a partial block stays behind
  void park_partial(BlockId block, Tick now);

  // Another holder of a block that is Filling or Sealed.
  void share(BlockId block);
  // One holder less of a block that has others; it was used until now.
  void unshare(BlockId block, Tick now);
  // Idle -> Sealed, one reference
  void acquire(BlockId block);
  // Sealed -> Idle, giving up the last reference
  void release(BlockId block, Tick now);
  // Idle -> Free
  void evict(BlockId block);

  // A copy reads the block meanwhile: it says so of a reference that it has. unpin() comes before
  // the copy gives that reference up.
  void pin(BlockId block) { ++pins_[block.value()]; }
  void unpin(BlockId block) {
    ASSERT(pins_[block.value()] > 0, "a pin ends once");
    --pins_[block.value()];
  }
  // References of sequences: those that are no pins.
  std::uint32_t users(BlockId block) const { return references(block) - pins_[block.value()]; }

  // When a holder last gave the block up; the block was held at least once.
  Tick last_use(BlockId block) const { return at(block).last_use; }

  // The node that a block belongs to, if any; the pool only remembers it.
  std::optional<NodeId> owner(BlockId block) const;
  void set_owner(BlockId block, std::optional<NodeId> node);

  // Is the block's place in the eviction queue taken? Kept here to keep metadata together.
  bool queued(BlockId block) const { return (word(block) & kQueuedBit) != 0; }
  void set_queued(BlockId block, bool queued);

  // Stops the program when an invariant (README: B1 to B4) does not hold. Linear.
  void check() const;

 private:
  static constexpr std::uint32_t kStateShift = 30;
  static constexpr std::uint32_t kQueuedBit = 1u << 29;
  static constexpr std::uint32_t kReferencesMask = kQueuedBit - 1;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kLanes = 8;

  struct Record {
    std::uint32_t word = 0;      // state (2 bits), queued (1), references (29)
    std::uint32_t link = kNone;  // Free: the next in its lane; else the owner node; or kNone
    Tick last_use = 0;
  };
  static_assert(sizeof(Record) == 16, "hot metadata takes at most 16 bytes a block");

  const Record& at(BlockId block) const { return records_[block.value()]; }
  Record& at(BlockId block) { return records_[block.value()]; }
  std::uint32_t word(BlockId block) const { return at(block).word; }
  void set_state(BlockId block, BlockState from, BlockState to, std::uint32_t references);
  void give_free(BlockId block);

  LargeArray<Record> records_;
  std::vector<std::uint32_t> pins_;  // [block]: of its references, those of copies that read it
  // The stack's block at height h, counted from 0, is in lane h % kLanes: these are the top ones.
  std::array<std::uint32_t, kLanes> first_free_;
  std::uint32_t blocks_free_ = 0;
  std::uint32_t blocks_idle_ = 0;
};

// These functions are inline: they take a few nanoseconds, and an std::optional that crosses a call
// costs as much again.

inline void BlockPool::set_state(BlockId block, BlockState from, BlockState to,
                                 std::uint32_t references) {
  ASSERT(state(block) == from, "the block is in another state");
  at(block).word =
      static_cast<std::uint32_t>(to) << kStateShift | (word(block) & kQueuedBit) | references;
}

inline std::optional<BlockId> BlockPool::allocate() {
  if (blocks_free_ == 0) return std::nullopt;
  std::uint32_t& first = first_free_[--blocks_free_ % kLanes];
  const BlockId block(first);
  first = at(block).link;
  if (first != kNone) __builtin_prefetch(&records_[first], 1);
  at(block).link = kNone;
  set_state(block, BlockState::kFree, BlockState::kFilling, 1);
  return block;
}

inline void BlockPool::give_free(BlockId block) {
  std::uint32_t& first = first_free_[blocks_free_++ % kLanes];
  at(block).link = first;
  first = block.value();
}

inline void BlockPool::seal(BlockId block) {
  set_state(block, BlockState::kFilling, BlockState::kSealed, references(block));
}

inline void BlockPool::drop(BlockId block) {
  ASSERT(references(block) == 1, "others still hold the block");
  set_state(block, BlockState::kFilling, BlockState::kFree, 0);
  give_free(block);
}

inline void BlockPool::park_partial(BlockId block, Tick now) {
  ASSERT(references(block) == 1, "others still hold the block");
  set_state(block, BlockState::kFilling, BlockState::kIdle, 0);
  at(block).last_use = now;
  ++blocks_idle_;
}

inline void BlockPool::share(BlockId block) {
  ASSERT(references(block) > 0 && references(block) < kReferencesMask, "held, and not too often");
  ++at(block).word;
}

inline void BlockPool::unshare(BlockId block, Tick now) {
  ASSERT(references(block) > 1, "the last holder releases, drops or parks the block");
  --at(block).word;
  at(block).last_use = now;
}

inline void BlockPool::acquire(BlockId block) {
  set_state(block, BlockState::kIdle, BlockState::kSealed, 1);
  --blocks_idle_;
}

inline void BlockPool::release(BlockId block, Tick now) {
  ASSERT(references(block) == 1, "others still hold the block");
  set_state(block, BlockState::kSealed, BlockState::kIdle, 0);
  at(block).last_use = now;
  ++blocks_idle_;
}

inline void BlockPool::evict(BlockId block) {
  set_state(block, BlockState::kIdle, BlockState::kFree, 0);
  --blocks_idle_;
  give_free(block);
}

inline std::optional<NodeId> BlockPool::owner(BlockId block) const {
  ASSERT(state(block) != BlockState::kFree, "a free block has no owner");
  const std::uint32_t link = at(block).link;
  if (link == kNone) return std::nullopt;
  return NodeId(link);
}

inline void BlockPool::set_owner(BlockId block, std::optional<NodeId> node) {
  ASSERT(state(block) != BlockState::kFree, "a free block has no owner");
  at(block).link = node ? node->value() : kNone;
}

inline void BlockPool::set_queued(BlockId block, bool queued) {
  std::uint32_t& bits = at(block).word;
  bits = queued ? bits | kQueuedBit : bits & ~kQueuedBit;
}

}  // namespace pagoda::kv

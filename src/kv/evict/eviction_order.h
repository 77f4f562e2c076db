// A policy that remembers more than when a block was used: one object per cache.
//
// The cache keeps the structural rules (README: E1 to E3) and tells the order what happens to its
// blocks; the order says where each stands. Blocks stand in queues; in each the largest score
// leaves first, and while a block stays in a queue its score only falls: an entry made earlier is
// an upper bound, corrected when it comes up (order_queues.h), so that a use costs nothing there.
//
// Every call takes constant time. Memory is a constant number of bytes per block of the pool,
// ghosts included: nothing grows with the past.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kv/evict/policy.h"
#include "kv/evict/request_stats.h"
#include "kv/ids.h"

namespace pagoda::kv {

// Describes one use of a block: a request fills it or finds it.
struct Use {
  Tick now = 0;
  std::int64_t time_s = 0;          // as the cache's owner tells it
  std::uint64_t tokens_before = 0;  // the block's
  RequestStats request;
};

class EvictionOrder {
 public:
  struct QueuePosition {
    std::uint32_t queue = 0;
    std::int64_t score = 0;
  };
  // The block of a queue that would leave next.
  struct Head {
    BlockId block;
    std::int64_t score = 0;
  };

  virtual ~EvictionOrder() = default;
  virtual std::uint32_t queues() const { return 1; }

  // The block can be found from now on.
  virtual void entered(BlockId block, const Use& use) = 0;
  // Its tokens are final. `identity` stands for them and all before them, and is the same when the
  // block comes back after it left: a hash of 64 bits under a key that clients do not know.
  virtual void sealed(BlockId /*block*/, std::uint64_t /*identity*/) {}
  // A request found it, at a tick of its own; the blocks of a request are told from tail to head.
  // Returns another block that came to an earlier queue by this.
  virtual std::optional<BlockId> used(BlockId block, const Use& use) = 0;
  // A request ends, and this is its last block.
  virtual void ended(BlockId /*block*/) {}
  // It cannot be found any more.
  virtual void left(BlockId block) = 0;

  // Returns the queue and score of a block that entered and did not leave.
  virtual QueuePosition position(BlockId block, const BlockStats& stats) const = 0;
  // Where to look for the next victim; when that queue has none, the others are tried in turn.
  virtual std::uint32_t first_queue() const { return 0; }
  // True: first_of() chooses instead, one of the heads that there are.
  virtual bool compares_heads() const { return false; }
  virtual std::uint32_t first_of(std::span<const std::optional<Head>> /*heads*/) const { return 0; }
  // Asked of a victim: does it stay after all, at a place further back? A block is spared only so
  // often as it was used.
  virtual bool spares(BlockId /*block*/) const { return false; }
  // It does, and goes there.
  virtual void spare(BlockId /*block*/) {}

  // Stops the program when what it remembers contradicts itself. Linear.
  virtual void check() const = 0;
};

}  // namespace pagoda::kv

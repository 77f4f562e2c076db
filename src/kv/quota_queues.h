// Regions that have more blocks than their quota, and which of their blocks goes first.
//
// While a region is over, its evictable blocks are what is evicted, those used longest ago first,
// whatever the policy; of several the one that has been over for longest. At most one region for
// each quota that the pool holds can be over at once, so that looking through them is bounded.
//
// A heap per region, linked through records of blocks (linked_heaps.h) that whoever keeps other
// heaps of the same blocks shares.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/evict/eviction_queue.h"
#include "kv/evict/linked_heaps.h"
#include "kv/ids.h"

namespace pagoda::kv {

class QuotaQueues {
 public:
  struct Options {
    std::uint64_t blocks_private = 0;  // of each region; 0: no quota
    std::uint64_t blocks_public = 0;
  };

  // The heaps must outlive it.
  QuotaQueues(const Options& options, LinkedHeaps& heaps) : options_(options), heaps_(heaps) {}

  // Memory for regions of so many numbers: what follows takes none.
  void fit(std::size_t regions);
  // The region has so many blocks now.
  void note_charge(SaltId region, std::uint64_t blocks);
  bool is_over(SaltId region) const {
    return region.value() < regions_.size() && regions_[region.value()].is_over;
  }

  bool has_quota(SaltId region) const { return quota(region) > 0; }

  // The block may be evicted now; a block that is there stays where it is.
  void push(SaltId region, BlockId block, Tick last_use);
  void erase(SaltId region, BlockId block);

  // The block to be evicted next because its region is over, taken out.
  // last_use(BlockId) and judge(BlockId) as in EvictionQueue.
  template <class LastUse, class Judge>
  std::optional<BlockId> pop(LastUse&& last_use, Judge&& judge) {
    for (const SaltId region : over_) {
      LinkedHeaps::Item& top = regions_[region.value()].top;
      while (top != LinkedHeaps::kNone) {
        const BlockId block(top);
        const bool takes = judge(block) == EvictionQueue::Verdict::kTake;
        const auto key = -static_cast<std::int64_t>(last_use(block));
        const bool exact = heaps_.key(top) == key;
        heaps_.erase(top, block.value());
        if (takes && exact) return block;
        if (takes) heaps_.push(top, block.value(), key);
      }
    }
    return std::nullopt;
  }

  // `blocks(region)`: what it is charged with. Linear.
  template <class Blocks>
  void check(Blocks&& blocks) const {
    for (std::uint32_t i = 0; i < regions_.size(); ++i) {
      heaps_.check(regions_[i].top);
      check_over(SaltId(i), blocks(SaltId(i)));
    }
  }

 private:
  struct Region {
    LinkedHeaps::Item top = LinkedHeaps::kNone;
    bool is_over = false;
  };

  std::uint64_t quota(SaltId region) const {
    return region == kPublic ? options_.blocks_public : options_.blocks_private;
  }
  Region& at(SaltId region) { return regions_[region.value()]; }
  void check_over(SaltId region, std::uint64_t blocks) const;

  Options options_;
  LinkedHeaps& heaps_;
  std::vector<Region> regions_;  // [salt]
  std::vector<SaltId> over_;     // since longest first
};

}  // namespace pagoda::kv

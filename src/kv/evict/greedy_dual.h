// Greedy-Dual (Young, 1994; Cao and Irani, 1997), with frequencies (Cherkasova, 1998): what a block
// is worth, on top of the cache's age.
//
// A block's rank is its worth plus the age at its last use, and the age is the rank of what was
// evicted last: what nobody uses any more is overtaken by what comes new. Of equal ranks the one
// used longest ago leaves first. Two policies are made of it:
//
//   lfu    worth = uses: least frequently used, with aging (LFU-DA: Arlitt et al., 2000). Counting
//          alone would keep for ever what was popular once.
//   cost   worth = uses x what it costs to compute the block again, which grows with its position:
//          the weights are multiplied as ever, attention reads all that came before.
#pragma once

#include <vector>

#include "kv/evict/eviction_order.h"

namespace pagoda::kv {

class GreedyDual final : public EvictionOrder {
 public:
  // tokens_doubling: the position at which a block costs twice what the first one does; 0: all cost
  // the same.
  GreedyDual(std::uint32_t blocks, std::uint64_t tokens_doubling)
      : records_(blocks), tokens_doubling_(tokens_doubling) {}

  void entered(BlockId block, const Use& use) override;
  std::optional<BlockId> used(BlockId block, const Use& use) override;
  void left(BlockId block) override;
  QueuePosition position(BlockId block, const BlockStats& stats) const override;
  void check() const override;

 private:
  struct Record {
    std::uint32_t uses = 0;  // 0: not in the cache
    std::uint32_t cost = 0;  // of computing it, in parts of the first block's
    std::uint32_t rank = 0;
  };

  // Ranks are told apart up to 2^23, which takes some 2^19 turnovers of the whole cache; those
  // beyond are equal. Ticks are told apart for 2^40 events.
  static constexpr std::uint32_t kRankMax = (1u << 23) - 1;
  static constexpr int kTickBits = 40;
  static constexpr std::uint32_t kCostUnit = 16;
  static constexpr std::uint32_t kCostMax = 64 * kCostUnit;

  void count_use(Record& record);

  std::vector<Record> records_;  // [block]
  std::uint64_t tokens_doubling_;
  std::uint32_t age_ = 0;
};

}  // namespace pagoda::kv

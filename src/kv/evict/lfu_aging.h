// Least frequently used, with aging (LFU-DA: Arlitt et al., 2000).
//
// Counting uses alone keeps what was popular once for ever. Here a block's rank is its uses plus
// the cache's age at its last use, and the age is the rank of what was evicted last: what nobody
// uses any more is overtaken by what comes new. Of equal ranks the one used longest ago leaves
// first.
#pragma once

#include <vector>

#include "kv/evict/eviction_order.h"

namespace pagoda::kv {

class LfuAging final : public EvictionOrder {
 public:
  explicit LfuAging(std::uint32_t blocks) : records_(blocks) {}

  void entered(BlockId block) override;
  std::optional<BlockId> used(BlockId block, Tick now) override;
  void left(BlockId block) override;
  Place place(BlockId block, const BlockStats& stats) const override;
  void check() const override;

 private:
  struct Record {
    std::uint32_t uses = 0;  // 0: not in the cache
    std::uint32_t rank = 0;
  };

  // Ranks are told apart up to 2^23, which takes as many turnovers of the whole cache; those beyond
  // are equal. Ticks are told apart for 2^40 events.
  static constexpr std::uint32_t kRankMax = (1u << 23) - 1;
  static constexpr int kTickBits = 40;

  void count_use(Record& record);

  std::vector<Record> records_;  // [block]
  std::uint32_t age_ = 0;
};

}  // namespace pagoda::kv

// Segmented LRU (Karedla et al., 1994): a block must be used again to be protected.
//
// New blocks are on probation and leave first, least recently used first. One that is found again
// is protected. At most four fifths of the pool are: the one that was protected or used longest ago
// goes back on probation, as if it had been used at that moment.
#pragma once

#include <vector>

#include "kv/evict/eviction_order.h"

namespace pagoda::kv {

class Slru final : public EvictionOrder {
 public:
  explicit Slru(std::uint32_t blocks);

  std::uint32_t queues() const override { return 2; }
  void entered(BlockId block, const Use& use) override;
  std::optional<BlockId> used(BlockId block, const Use& use) override;
  void left(BlockId block) override;
  QueuePosition position(BlockId block, const BlockStats& stats) const override;
  void check() const override;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kProbation = 0;
  static constexpr std::uint32_t kProtected = 1;

  struct Record {
    std::uint32_t older = kNone;
    std::uint32_t newer = kNone;
    bool is_protected = false;
    Tick demoted = 0;  // when it was last put back on probation
  };

  void take_out(std::uint32_t block);

  std::vector<Record> records_;  // [block]; the protected ones are a list
  std::uint32_t protected_max_;
  std::uint32_t protected_ = 0;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
};

}  // namespace pagoda::kv

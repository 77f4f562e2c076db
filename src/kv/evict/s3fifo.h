// S3-FIFO (Yang et al., SOSP 2023): most blocks are never used again, so they pass quickly.
//
// Three queues in order of arrival. New blocks enter a small one, a tenth of the pool; those that
// were used twice by the time they reach its end go on to the main queue, the others leave and
// their identities become ghosts, as many as the main queue has blocks. What comes back while it is
// a ghost enters the main queue at once. There a block that was used since goes round again, up to
// three times. A use only counts: it moves nothing.
//
// Memory: 24 bytes a block and a ghost of 28 for nine blocks of ten.
#pragma once

#include <vector>

#include "kv/evict/eviction_order.h"
#include "kv/evict/ghost_list.h"

namespace pagoda::kv {

class S3Fifo final : public EvictionOrder {
 public:
  explicit S3Fifo(std::uint32_t blocks);

  std::uint32_t queues() const override { return 2; }
  void entered(BlockId block, const Use& use) override;
  void sealed(BlockId block, std::uint64_t identity) override;
  std::optional<BlockId> used(BlockId block, const Use& use) override;
  void left(BlockId block) override;
  QueuePosition position(BlockId block, const BlockStats& stats) const override;
  std::uint32_t first_queue() const override;
  bool spares(BlockId block) const override;
  void spare(BlockId block) override;
  void check() const override;

 private:
  static constexpr std::uint32_t kSmall = 0;
  static constexpr std::uint32_t kMain = 1;
  static constexpr std::uint8_t kUsesMax = 3;
  static constexpr std::uint8_t kUsesToStay = 2;  // in the small queue

  struct Record {
    std::uint64_t identity = 0;
    std::uint64_t arrival = 0;  // in its queue, counted by arrivals_
    bool is_here = false;
    bool is_main = false;
    bool is_sealed = false;
    std::uint8_t uses = 0;
  };

  void move_to_main(Record& record);

  std::vector<Record> records_;  // [block]
  GhostList ghosts_;
  std::uint32_t small_max_;
  std::uint32_t small_ = 0;  // blocks in the small queue
  std::uint32_t main_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace pagoda::kv

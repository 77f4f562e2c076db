// ARC (Megiddo and Modha, FAST 2003): recency and frequency share the pool as the ghosts advise.
//
// Blocks that were found once stand in one list, those found again in another, both least recently
// used first; each has ghosts of what left it. A block that comes back while it is a ghost says
// that its list was too short: the target for the first list moves, by one or by how many times
// longer the other ghost list is. A victim comes from the first list while that is longer than its
// target.
//
// Memory: 16 bytes a block, and ghosts of 28: both lists together have at most one a block and each
// has room for that, so 72 bytes a block in all.
#pragma once

#include <vector>

#include "kv/evict/eviction_order.h"
#include "kv/evict/ghost_list.h"

namespace pagoda::kv {

class Arc final : public EvictionOrder {
 public:
  explicit Arc(std::uint32_t blocks);

  std::uint32_t queues() const override { return 2; }
  void entered(BlockId block, const Use& use) override;
  void sealed(BlockId block, std::uint64_t identity) override;
  std::optional<BlockId> used(BlockId block, const Use& use) override;
  void left(BlockId block) override;
  QueuePosition position(BlockId block, const BlockStats& stats) const override;
  std::uint32_t first_queue() const override;
  void check() const override;

 private:
  static constexpr std::uint32_t kOnce = 0;
  static constexpr std::uint32_t kAgain = 1;

  struct Record {
    std::uint64_t identity = 0;
    bool is_here = false;
    bool is_sealed = false;
    bool is_again = false;
  };

  void move_to_again(Record& record);
  void trim_ghosts();

  std::vector<Record> records_;  // [block]
  GhostList ghosts_once_;
  GhostList ghosts_again_;
  std::uint32_t once_ = 0;  // blocks in the list
  std::uint32_t again_ = 0;
  std::uint32_t once_target_ = 0;
};

}  // namespace pagoda::kv

// Least recently used, with credit for what is likely to be continued: a policy of our own.
//
// Most blocks that a cache of prompts sees are never used again; those that are belong to
// conversations, whose next turn finds all that came before. Signs of that which the cache sees are
// worth time: a block counts as used so many credits later than it was.
//
//   found again once, twice, three times or more                                   +1, +2, +3
//   new, and its request goes on where an earlier one ended, with less than half
//     of what it found: the next turn of a conversation, whose chain shares a fate          +1
//   new, and its request goes on with more than that: what was inserted seldom stays        -1
//   new, and the last block of its request: the next turn goes on before its end            -1
//   new otherwise                                                                            0
//
// Reuses are remembered for a while after a block left. What a credit is worth is learned, up to a
// turnover of the pool: beside the cache the identities that plain lru would have are kept, and
// every block that is found and lru would have lost makes it worth more, every block that is
// computed again and lru would have found makes it worth less. So where credit misleads, this is
// nearly lru. Figures, and what else was tried: docs/notes/policies.md.
//
// A queue for each of five credits, least recently used first, and their heads compared. Memory:
// 80 bytes a block in queues, 16 for what is known of it, and three ghosts of 28.
#pragma once

#include <vector>

#include "kv/evict/eviction_order.h"
#include "kv/evict/ghost_list.h"

namespace pagoda::kv {

class Continuation final : public EvictionOrder {
 public:
  explicit Continuation(std::uint32_t blocks);

  std::uint32_t queues() const override { return kReusesMax - kCreditMin + 1; }
  void entered(BlockId block, const Use& use) override;
  void sealed(BlockId block, std::uint64_t identity) override;
  std::optional<BlockId> used(BlockId block, const Use& use) override;
  void ended(BlockId block) override;
  void left(BlockId block) override;
  QueuePosition position(BlockId block, const BlockStats& stats) const override;
  bool compares_heads() const override { return true; }
  std::uint32_t first_of(std::span<const std::optional<Head>> heads) const override;
  void check() const override;

 private:
  static constexpr std::int32_t kCreditMin = -1;
  static constexpr std::int32_t kReusesMax = 3;

  struct Record {
    std::uint64_t identity = 0;
    bool is_here = false;
    bool is_sealed = false;
    std::int8_t credit = 0;  // of a new block
    std::uint8_t reuses = 0;
  };

  void learn(bool found, std::uint64_t identity);
  static std::int32_t credit_of(const Record& record) {
    return record.reuses > 0 ? record.reuses : record.credit;
  }

  std::vector<Record> records_;  // [block]
  GhostList ghosts_;             // with their reuses
  GhostList lru_;                // what a cache of as many blocks would have under lru
  std::int64_t credit_ticks_;    // what a credit is worth
};

}  // namespace pagoda::kv

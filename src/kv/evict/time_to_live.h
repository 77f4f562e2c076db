// Time to live, by priority: the block whose time is over first leaves first.
//
// Every use gives a block five minutes from then on; the use of a more urgent request gives twice
// as long for each step of priority, that of a less urgent one half. While a block lives it keeps
// the priority of the most urgent request that used it; one whose time is over has that of its next
// user. Among requests of one priority this is least recently used.
//
// A queue for each of five priorities, least recently used first, and their heads compared: 80
// bytes a block, and 16 for what is known of it. Time is what the cache's owner says it is.
#pragma once

#include <array>
#include <vector>

#include "kv/evict/eviction_order.h"

namespace pagoda::kv {

class TimeToLive final : public EvictionOrder {
 public:
  explicit TimeToLive(std::uint32_t blocks) : records_(blocks) {}

  std::uint32_t queues() const override { return kLevels; }
  void entered(BlockId block, const Use& use) override;
  std::optional<BlockId> used(BlockId block, const Use& use) override;
  void left(BlockId block) override { records_[block.value()] = {}; }
  QueuePosition position(BlockId block, const BlockStats& stats) const override;
  bool compares_heads() const override { return true; }
  std::uint32_t first_of(std::span<const std::optional<Head>> heads) const override;
  void check() const override;

 private:
  static constexpr std::int32_t kPriorityMax = 2;  // on both sides of 0; those beyond are equal
  static constexpr std::uint32_t kLevels = 2 * kPriorityMax + 1;
  static constexpr std::array<std::int64_t, kLevels> kLifeS = {1200, 600, 300, 150, 75};

  struct Record {
    std::int64_t used_s = 0;
    std::uint8_t level = 0;  // 0: the most urgent

    std::int64_t ends_s() const { return used_s + kLifeS[level]; }
  };

  std::vector<Record> records_;  // [block]
};

}  // namespace pagoda::kv

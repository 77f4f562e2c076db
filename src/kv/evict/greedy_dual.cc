#include "kv/evict/greedy_dual.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {

void GreedyDual::entered(BlockId block, const Use& use) {
  Record& record = records_[block.value()];
  record = {.uses = 0, .cost = 1};
  if (tokens_doubling_ > 0) {
    const std::uint64_t more = use.tokens_before * kCostUnit / tokens_doubling_;
    record.cost = static_cast<std::uint32_t>(std::min<std::uint64_t>(kCostUnit + more, kCostMax));
  }
  count_use(record);
}

std::optional<BlockId> GreedyDual::used(BlockId block, const Use& /*use*/) {
  count_use(records_[block.value()]);
  return std::nullopt;
}

void GreedyDual::count_use(Record& record) {
  record.uses = std::min(record.uses + 1, kRankMax);
  const std::uint64_t worth = std::uint64_t{record.uses} * record.cost;
  record.rank = static_cast<std::uint32_t>(std::min<std::uint64_t>(age_ + worth, kRankMax));
}

void GreedyDual::left(BlockId block) {
  Record& record = records_[block.value()];
  age_ = std::max(age_, record.rank);
  record = {};
}

EvictionOrder::QueuePosition GreedyDual::position(BlockId block, const BlockStats& stats) const {
  const auto rank = std::int64_t{records_[block.value()].rank};
  const auto tick = static_cast<std::int64_t>(stats.last_use & ((1ull << kTickBits) - 1));
  return {.queue = 0, .score = -(rank << kTickBits | tick)};
}

void GreedyDual::check() const {
  for (const Record& record : records_) {
    const std::uint64_t worth = std::uint64_t{record.uses} * record.cost;
    ASSERT(record.rank >= std::min<std::uint64_t>(worth, kRankMax),
           "F1: a block's rank counts its uses and what they cost");
    ASSERT(record.uses > 0 || record.rank == 0, "F1: what left has no rank");
  }
}

}  // namespace pagoda::kv

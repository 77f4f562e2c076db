#include "kv/evict/lfu_aging.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {

void LfuAging::entered(BlockId block) {
  Record& record = records_[block.value()];
  record = {};
  count_use(record);
}

std::optional<BlockId> LfuAging::used(BlockId block, Tick /*now*/) {
  count_use(records_[block.value()]);
  return std::nullopt;
}

void LfuAging::count_use(Record& record) {
  record.uses = std::min(record.uses + 1, kRankMax);
  record.rank = std::min(age_ + record.uses, kRankMax);
}

void LfuAging::left(BlockId block) {
  Record& record = records_[block.value()];
  age_ = std::max(age_, record.rank);
  record = {};
}

EvictionOrder::Place LfuAging::place(BlockId block, const BlockStats& stats) const {
  const auto rank = std::int64_t{records_[block.value()].rank};
  const auto tick = static_cast<std::int64_t>(stats.last_use & ((1ull << kTickBits) - 1));
  return {.queue = 0, .score = -(rank << kTickBits | tick)};
}

void LfuAging::check() const {
  for (const Record& record : records_) {
    ASSERT(record.uses <= record.rank, "F1: a block's rank counts its uses");
    ASSERT(record.uses > 0 || record.rank == 0, "F1: what left has no rank");
  }
}

}  // namespace pagoda::kv

#include "kv/evict/slru.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {

Slru::Slru(std::uint32_t blocks)
    : records_(blocks), protected_max_(static_cast<std::uint32_t>(std::uint64_t{blocks} * 4 / 5)) {}

void Slru::entered(BlockId block, const Use& /*use*/) { records_[block.value()] = {}; }

std::optional<BlockId> Slru::used(BlockId block, const Use& use) {
  const std::uint32_t at = block.value();
  if (records_[at].is_protected) take_out(at);
  Record& record = records_[at];
  record.is_protected = true;
  record.older = newest_;
  record.newer = kNone;
  (newest_ == kNone ? oldest_ : records_[newest_].newer) = at;
  newest_ = at;
  if (++protected_ <= protected_max_) return std::nullopt;
  const std::uint32_t demoted = oldest_;
  take_out(demoted);
  records_[demoted].demoted = use.now;
  return BlockId(demoted);
}

void Slru::left(BlockId block) {
  if (records_[block.value()].is_protected) take_out(block.value());
}

void Slru::take_out(std::uint32_t block) {
  Record& record = records_[block];
  (record.older == kNone ? oldest_ : records_[record.older].newer) = record.newer;
  (record.newer == kNone ? newest_ : records_[record.newer].older) = record.older;
  record.is_protected = false;
  --protected_;
}

EvictionOrder::QueuePosition Slru::position(BlockId block, const BlockStats& stats) const {
  const Record& record = records_[block.value()];
  return {.queue = record.is_protected ? kProtected : kProbation,
          .score = -static_cast<std::int64_t>(std::max(stats.last_use, record.demoted))};
}

void Slru::check() const {
  std::uint32_t seen = 0;
  std::uint32_t older = kNone;
  for (std::uint32_t at = oldest_; at != kNone; at = records_[at].newer) {
    ASSERT(records_[at].is_protected, "F2: what is in the list is protected");
    ASSERT(records_[at].older == older, "F2: a protected block knows the next older");
    older = at;
    ++seen;
  }
  const auto known = std::count_if(records_.begin(), records_.end(),
                                   [](const Record& record) { return record.is_protected; });
  ASSERT(seen == protected_ && known == protected_, "F2: every protected block is in the list");
  ASSERT(protected_ <= protected_max_, "F2: no more are protected than may be");
}

}  // namespace pagoda::kv

#include "kv/quota_queues.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {

void QuotaQueues::fit(std::size_t regions) {
  if (regions <= regions_.size()) return;
  regions_.resize(regions);
  over_.reserve(regions_.capacity());
}

void QuotaQueues::note_charge(SaltId region, std::uint64_t blocks) {
  const bool is_over = quota(region) > 0 && blocks > quota(region);
  Region& record = at(region);
  if (record.is_over == is_over) return;
  record.is_over = is_over;
  if (is_over) {
    over_.push_back(region);
  } else {
    over_.erase(std::find(over_.begin(), over_.end(), region));
  }
}

void QuotaQueues::push(SaltId region, BlockId block, Tick last_use) {
  if (quota(region) == 0 || heaps_.contains(block.value())) return;
  heaps_.push(at(region).top, block.value(), -static_cast<std::int64_t>(last_use));
}

void QuotaQueues::erase(SaltId region, BlockId block) {
  if (quota(region) == 0 || !heaps_.contains(block.value())) return;
  heaps_.erase(at(region).top, block.value());
}

void QuotaQueues::check_over(SaltId region, std::uint64_t blocks) const {
  const bool is_over = quota(region) > 0 && blocks > quota(region);
  const auto listed = std::count(over_.begin(), over_.end(), region);
  ASSERT(regions_[region.value()].is_over == is_over && listed == (is_over ? 1 : 0),
         "Q1: which regions are over their quota is known");
}

}  // namespace pagoda::kv

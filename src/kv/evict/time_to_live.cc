#include "kv/evict/time_to_live.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {
namespace {

std::uint8_t level_of(std::int32_t priority, std::int32_t priority_max) {
  return static_cast<std::uint8_t>(std::clamp(priority, -priority_max, priority_max) +
                                   priority_max);
}

}  // namespace

void TimeToLive::entered(BlockId block, const Use& use) {
  records_[block.value()] = {.used_s = use.time_s,
                             .level = level_of(use.request.priority, kPriorityMax)};
}

std::optional<BlockId> TimeToLive::used(BlockId block, const Use& use) {
  Record& record = records_[block.value()];
  const std::uint8_t level = level_of(use.request.priority, kPriorityMax);
  record.level = use.time_s < record.ends_s() ? std::min(record.level, level) : level;
  record.used_s = use.time_s;
  return std::nullopt;
}

EvictionOrder::QueuePosition TimeToLive::position(BlockId block, const BlockStats& stats) const {
  return {.queue = records_[block.value()].level,
          .score = -static_cast<std::int64_t>(stats.last_use)};
}

std::uint32_t TimeToLive::first_of(std::span<const std::optional<Head>> heads) const {
  std::optional<std::uint32_t> first;
  const auto leaves_before = [&](const Head& a, const Head& b) {
    const std::int64_t ends_a = records_[a.block.value()].ends_s();
    const std::int64_t ends_b = records_[b.block.value()].ends_s();
    return ends_a != ends_b ? ends_a < ends_b : a.score > b.score;
  };
  for (std::uint32_t i = 0; i < heads.size(); ++i) {
    if (heads[i] && (!first || leaves_before(*heads[i], *heads[*first]))) first = i;
  }
  return first.value();
}

void TimeToLive::check() const {
  for (const Record& record : records_) {
    ASSERT(record.level < kLevels, "F5: a block has one of the priorities that are told apart");
  }
}

}  // namespace pagoda::kv

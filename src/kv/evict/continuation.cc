#include "kv/evict/continuation.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace pagoda::kv {
namespace {

// A block that is filled or found and let go again takes two ticks, a turnover so many for each.
constexpr std::int64_t kTicksPerBlock = 2;
// A credit is worth between one turnover divided by this and one turnover: never nothing, so that
// there is always something to learn from.
constexpr std::int64_t kCreditShareMin = 16;
// Each block that only one of credit and plain lru finds changes a credit's worth by so many ticks.
constexpr std::int64_t kTicksLearned = 8;

std::int8_t credit_of_new(const RequestStats& request) {
  if (!request.goes_on) return 0;
  return 2 * request.blocks_fresh < request.blocks_found ? 1 : -1;
}

std::uint32_t ghosts_for(std::uint32_t blocks) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(2 * std::uint64_t{blocks}, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

Continuation::Continuation(std::uint32_t blocks)
    : records_(blocks),
      ghosts_(ghosts_for(blocks)),
      lru_(blocks),
      credit_ticks_(kTicksPerBlock * std::int64_t{blocks} / 2) {}

void Continuation::learn(bool found, std::uint64_t identity) {
  const std::int64_t turnover = kTicksPerBlock * static_cast<std::int64_t>(records_.size());
  const bool lru_finds = lru_.contains(identity);
  if (found != lru_finds) {
    credit_ticks_ = std::clamp(credit_ticks_ + (found ? kTicksLearned : -kTicksLearned),
                               turnover / kCreditShareMin, turnover);
  }
  lru_.insert(identity);
}

void Continuation::entered(BlockId block, const Use& use) {
  records_[block.value()] = {.is_here = true, .credit = credit_of_new(use.request)};
}

void Continuation::sealed(BlockId block, std::uint64_t identity) {
  Record& record = records_[block.value()];
  record.identity = identity;
  record.is_sealed = true;
  learn(false, identity);
  const std::optional<std::uint32_t> reuses = ghosts_.take(identity);
  if (reuses) {
    record.reuses = static_cast<std::uint8_t>(
        std::min<std::int32_t>(static_cast<std::int32_t>(*reuses) + 1, kReusesMax));
  }
}

std::optional<BlockId> Continuation::used(BlockId block, const Use& /*use*/) {
  Record& record = records_[block.value()];
  record.reuses = static_cast<std::uint8_t>(std::min(record.reuses + 1, kReusesMax));
  if (record.is_sealed) learn(true, record.identity);
  return std::nullopt;
}

void Continuation::ended(BlockId block) { records_[block.value()].credit = kCreditMin; }

void Continuation::left(BlockId block) {
  Record& record = records_[block.value()];
  if (record.is_sealed) ghosts_.insert(record.identity, record.reuses);
  record = {};
}

EvictionOrder::QueuePosition Continuation::position(BlockId block, const BlockStats& stats) const {
  const std::int32_t credit = credit_of(records_[block.value()]);
  return {.queue = static_cast<std::uint32_t>(credit - kCreditMin),
          .score = -static_cast<std::int64_t>(stats.last_use)};
}

std::uint32_t Continuation::first_of(std::span<const std::optional<Head>> heads) const {
  std::optional<std::uint32_t> first;
  std::int64_t score = 0;
  for (std::uint32_t i = 0; i < heads.size(); ++i) {
    if (!heads[i]) continue;
    const std::int64_t credit = static_cast<std::int64_t>(i) + kCreditMin;
    const std::int64_t credited = heads[i]->score - credit * credit_ticks_;
    if (first && credited <= score) continue;
    first = i;
    score = credited;
  }
  return first.value();
}

void Continuation::check() const {
  ghosts_.check();
  lru_.check();
  for (const Record& record : records_) {
    ASSERT(record.reuses <= kReusesMax && record.credit >= kCreditMin && record.credit <= 1,
           "F6: credit is within its bounds");
    ASSERT(record.is_here || (!record.is_sealed && record.reuses == 0), "F6: what left has none");
  }
}

}  // namespace pagoda::kv

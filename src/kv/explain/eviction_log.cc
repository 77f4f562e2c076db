#include "kv/explain/eviction_log.h"

#include "base/assert.h"

namespace pagoda::kv {

EvictionLog::EvictionLog(std::uint32_t eviction_records_max)
    : records_(eviction_records_max), heads_(eviction_records_max, kNone) {
  ASSERT(eviction_records_max > 0, "a log has room");
}

void EvictionLog::add(std::uint64_t identity, const EvictionRecord& record) {
  if (added_ >= records_.size()) forget_oldest();
  const auto at = static_cast<std::uint32_t>(added_++ % records_.size());
  std::uint32_t& head = heads_[chain_of(identity)];
  records_[at] = {.identity = identity,
                  .left_ns = record.left_ns,
                  .idle = record.idle,
                  .account = record.account,
                  .older = head,
                  .cause = record.cause};
  head = at;
}

// The oldest of all is the last of its chain.
void EvictionLog::forget_oldest() {
  const auto oldest = static_cast<std::uint32_t>(added_ % records_.size());
  std::uint32_t* link = &heads_[chain_of(records_[oldest].identity)];
  while (*link != oldest) link = &records_[*link].older;
  *link = kNone;
  forgotten_until_ns_ = records_[oldest].left_ns;
}

std::optional<EvictionRecord> EvictionLog::find(std::uint64_t identity) const {
  for (std::uint32_t at = heads_[chain_of(identity)]; at != kNone; at = records_[at].older) {
    const Record& record = records_[at];
    if (record.identity != identity) continue;
    return EvictionRecord{record.left_ns, record.idle, record.account, record.cause};
  }
  return std::nullopt;
}

void EvictionLog::check() const {
  const std::uint64_t known = added_ < records_.size() ? added_ : records_.size();
  // How long ago the record was written: 1 for the latest.
  const auto age = [&](std::uint32_t at) {
    return (added_ + records_.size() - at - 1) % records_.size() + 1;
  };
  std::uint64_t found = 0;
  for (std::size_t chain = 0; chain < heads_.size(); ++chain) {
    std::uint64_t newer = 0;
    for (std::uint32_t at = heads_[chain]; at != kNone; at = records_[at].older) {
      ASSERT(chain_of(records_[at].identity) == chain, "D1: a record is in its chain");
      ASSERT(age(at) > newer && age(at) <= known, "D1: chains go from new to old");
      newer = age(at);
      ++found;
    }
  }
  ASSERT(found == known, "D1: every record is in a chain");
}

}  // namespace pagoda::kv

#include "kv/explain/departure_log.h"

#include "base/assert.h"

namespace pagoda::kv {

DepartureLog::DepartureLog(std::uint32_t departures_max)
    : records_(departures_max), heads_(departures_max, kNone) {
  ASSERT(departures_max > 0, "a log has room");
}

void DepartureLog::add(std::uint64_t identity, const Departure& departure) {
  if (added_ >= records_.size()) forget_oldest();
  const auto at = static_cast<std::uint32_t>(added_++ % records_.size());
  std::uint32_t& head = heads_[chain_of(identity)];
  records_[at] = {.identity = identity,
                  .left_ns = departure.left_ns,
                  .idle = departure.idle,
                  .account = departure.account,
                  .older = head,
                  .cause = departure.cause};
  head = at;
}

// The oldest of all is the last of its chain.
void DepartureLog::forget_oldest() {
  const auto oldest = static_cast<std::uint32_t>(added_ % records_.size());
  std::uint32_t* link = &heads_[chain_of(records_[oldest].identity)];
  while (*link != oldest) link = &records_[*link].older;
  *link = kNone;
  forgotten_until_ns_ = records_[oldest].left_ns;
}

std::optional<Departure> DepartureLog::find(std::uint64_t identity) const {
  for (std::uint32_t at = heads_[chain_of(identity)]; at != kNone; at = records_[at].older) {
    const Record& record = records_[at];
    if (record.identity != identity) continue;
    return Departure{record.left_ns, record.idle, record.account, record.cause};
  }
  return std::nullopt;
}

void DepartureLog::check() const {
  const std::uint64_t known = added_ < records_.size() ? added_ : records_.size();
  // How long ago the record was written: 1 for the latest.
  const auto age = [&](std::uint32_t at) {
    return (added_ + records_.size() - at - 1) % records_.size() + 1;
  };
  std::uint64_t found = 0;
  for (std::size_t chain = 0; chain < heads_.size(); ++chain) {
    std::uint64_t newer = 0;
    for (std::uint32_t at = heads_[chain]; at != kNone; at = records_[at].older) {
      ASSERT(chain_of(records_[at].identity) == chain, "D1: a departure is in its chain");
      ASSERT(age(at) > newer && age(at) <= known, "D1: chains go from new to old");
      newer = age(at);
      ++found;
    }
  }
  ASSERT(found == known, "D1: every departure is in a chain");
}

}  // namespace pagoda::kv

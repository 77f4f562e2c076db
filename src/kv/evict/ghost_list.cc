#include "kv/evict/ghost_list.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {

GhostList::GhostList(std::uint32_t ghosts_max)
    : ghosts_(ghosts_max), heads_(std::max(ghosts_max, 1u), kNone) {
  for (std::uint32_t i = ghosts_max; i-- > 0;) {
    ghosts_[i].chain = unused_;
    unused_ = i;
  }
}

void GhostList::insert(std::uint64_t identity, std::uint32_t note) {
  if (ghosts_.empty()) return;
  erase(identity);
  if (unused_ == kNone) erase_oldest();
  const std::uint32_t at = unused_;
  unused_ = ghosts_[at].chain;
  std::uint32_t& first = head(identity);
  ghosts_[at] = {.identity_low = static_cast<std::uint32_t>(identity),
                 .identity_high = static_cast<std::uint32_t>(identity >> 32),
                 .chain = first,
                 .older = newest_,
                 .newer = kNone,
                 .note = note};
  first = at;
  (newest_ == kNone ? oldest_ : ghosts_[newest_].newer) = at;
  newest_ = at;
  ++size_;
}

std::optional<std::uint32_t> GhostList::take(std::uint64_t identity) {
  const std::uint32_t at = find(identity);
  if (at == kNone) return std::nullopt;
  take_out(at);
  return ghosts_[at].note;
}

void GhostList::erase_oldest() {
  if (oldest_ != kNone) take_out(oldest_);
}

std::uint32_t GhostList::find(std::uint64_t identity) const {
  std::uint32_t at = heads_[identity % heads_.size()];
  while (at != kNone && ghosts_[at].identity() != identity) at = ghosts_[at].chain;
  return at;
}

void GhostList::take_out(std::uint32_t at) {
  Ghost& ghost = ghosts_[at];
  std::uint32_t* link = &head(ghost.identity());
  while (*link != at) link = &ghosts_[*link].chain;
  *link = ghost.chain;
  (ghost.older == kNone ? oldest_ : ghosts_[ghost.older].newer) = ghost.newer;
  (ghost.newer == kNone ? newest_ : ghosts_[ghost.newer].older) = ghost.older;
  ghost.chain = unused_;
  unused_ = at;
  --size_;
}

void GhostList::check() const {
  std::uint32_t seen = 0;
  std::uint32_t newer = kNone;
  for (std::uint32_t at = newest_; at != kNone; at = ghosts_[at].older) {
    ASSERT(ghosts_[at].newer == newer, "G1: a ghost knows the next newer");
    ASSERT(find(ghosts_[at].identity()) == at, "G1: a ghost is found by its identity");
    newer = at;
    ++seen;
  }
  ASSERT(seen == size_ && oldest_ == newer, "G1: the count of ghosts is true");
}

}  // namespace pagoda::kv

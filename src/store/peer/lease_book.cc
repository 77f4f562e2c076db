#include "store/peer/lease_book.h"

#include <algorithm>

namespace pagoda::store {

std::optional<kv::BlockId> LeaseBook::add(Holder holder, kv::LeasedPage page,
                                          std::int64_t until_ns) {
  const kv::BlockId block = page.block;
  const auto [at, is_new] =
      leases_.try_emplace({holder, page.label.key}, Lease{std::move(page), until_ns});
  next_end_ns_ = std::min(next_end_ns_, until_ns);
  if (is_new) return std::nullopt;
  at->second.until_ns = until_ns;
  return block;
}

bool LeaseBook::claim(Holder holder, const kv::PageKey& key, std::int64_t until_ns) {
  if (const auto held = leases_.find({holder, key}); held != leases_.end()) {
    held->second.until_ns = until_ns;
    return true;
  }
  auto free = leases_.extract({kNobody, key});
  if (free.empty()) return false;
  free.key().first = holder;
  free.mapped().until_ns = until_ns;
  leases_.insert(std::move(free));
  next_end_ns_ = std::min(next_end_ns_, until_ns);
  return true;
}

const kv::LeasedPage* LeaseBook::find(Holder holder, const kv::PageKey& key) const {
  const auto found = leases_.find({holder, key});
  return found == leases_.end() ? nullptr : &found->second.page;
}

template <class Chosen>
std::size_t LeaseBook::end_where(Ended& ended, Chosen&& chosen) {
  const std::size_t before = leases_.size();
  next_end_ns_ = INT64_MAX;
  for (auto lease = leases_.begin(); lease != leases_.end();) {
    if (chosen(lease->first.first, lease->second)) {
      ended.push_back(lease->second.page.block);
      lease = leases_.erase(lease);
    } else {
      next_end_ns_ = std::min(next_end_ns_, lease->second.until_ns);
      ++lease;
    }
  }
  return before - leases_.size();
}

void LeaseBook::end(Holder holder, const kv::PageKey& key, Ended& ended) {
  const auto found = leases_.find({holder, key});
  if (found == leases_.end()) return;
  ended.push_back(found->second.page.block);
  leases_.erase(found);
}

void LeaseBook::end_all(Holder holder, Ended& ended) {
  end_where(ended, [&](Holder one, const Lease&) { return one == holder; });
}

void LeaseBook::revoke(const std::optional<kv::OwnerTag>& owner, Ended& ended) {
  end_where(ended,
            [&](Holder, const Lease& lease) { return !owner || lease.page.label.owner == *owner; });
}

std::size_t LeaseBook::expire(std::int64_t now_ns, Ended& ended) {
  if (now_ns < next_end_ns_) return 0;
  return end_where(ended, [&](Holder, const Lease& lease) { return lease.until_ns <= now_ns; });
}

}  // namespace pagoda::store

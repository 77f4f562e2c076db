// LeaseBook knows which pages are leased to whom, and until when. Pages of a prompt that was handed
// over are nobody's until somebody asks for them.
//
// Nothing ends a lease behind its owner's back: whatever leaves the book is returned, once, so that
// the cache can be told. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kv/tiers/page_lease.h"

namespace pagoda::store {

class LeaseBook {
 public:
  // A connection's number.
  using Holder = std::uint64_t;
  static constexpr Holder kNobody = 0;
  using Ended = std::vector<kv::BlockId>;

  // The holder has the page until then. Returns the page's block where the holder has it already:
  // one lease on it is too many.
  std::optional<kv::BlockId> add(Holder holder, kv::LeasedPage page, std::int64_t until_ns);
  // True: the holder has the page; one that is nobody's becomes the holder's, until then.
  bool claim(Holder holder, const kv::PageKey& key, std::int64_t until_ns);
  // nullptr: the holder has no such page.
  const kv::LeasedPage* find(Holder holder, const kv::PageKey& key) const;

  void end(Holder holder, const kv::PageKey& key, Ended& ended);
  void end_all(Holder holder, Ended& ended);
  // Nothing: all leases.
  void revoke(const std::optional<kv::OwnerTag>& owner, Ended& ended);
  // Returns how many leases were over.
  std::size_t expire(std::int64_t now_ns, Ended& ended);

  // When a lease is over, at the earliest; INT64_MAX: none is running.
  std::int64_t next_end_ns() const { return next_end_ns_; }
  std::size_t size() const { return leases_.size(); }

 private:
  struct Lease {
    kv::LeasedPage page;
    std::int64_t until_ns = 0;
  };

  template <class Chosen>
  std::size_t end_where(Ended& ended, Chosen&& chosen);

  std::map<std::pair<Holder, kv::PageKey>, Lease> leases_;
  std::int64_t next_end_ns_ = INT64_MAX;
};

}  // namespace pagoda::store

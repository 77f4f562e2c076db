// Leases on pages of the pool, for those who serve them to other servers: a leased page is pinned,
// so that it can be copied without asking the cache again.
//
// The lessor, the cache's side, bounds how many pages are leased; the lessee bounds how long, and
// ends every lease it was given exactly once.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kv/ids.h"
#include "kv/tiers/page_store.h"

namespace pagoda::kv {

struct LeasedPage {
  PageLabel label;
  BlockId block;
  std::span<const std::byte> page;  // stays as it is until the lease ends
};

// Any thread may call a lessor.
class PageLessor {
 public:
  virtual ~PageLessor() = default;
  // Leases the pages of the first keys: up to the first that is not there, or for which there is no
  // room. `done` is called once on the cache's thread; never, where the cache's owner goes before.
  virtual void lease(std::vector<PageKey> keys,
                     std::function<void(std::vector<LeasedPage>)> done) = 0;
  // Ends one lease on each block.
  virtual void end_leases(std::vector<BlockId> blocks) = 0;
};

// The cache's thread alone calls a lessee.
class PageLessee {
 public:
  virtual ~PageLessee() = default;
  // The prompt of these blocks was handed over, and somebody is about to ask for its pages. Those
  // for which there was no room are not among `pages`, which may be none.
  virtual void take(std::vector<LeasedPage> pages, std::vector<BlockHash> prompt) = 0;
  // Leases on an owner's pages, or all, are to end as soon as no page of them is being copied.
  virtual void revoke(std::optional<OwnerTag> owner) = 0;
};

}  // namespace pagoda::kv

// TenantRemovals removes tenants' pages from the pool and from every tier.
//
//   engine's thread     begin: the pool's blocks leave, nothing more of the tenant is written
//                       wait: copies out to stores have ended
//   removals' thread    every store removes its pages, which may take long
//   engine's thread     end: pages that came meanwhile leave the pool, the caller is told
//
// Neither the engine nor the caller waits: after the end no page that was there before is found, in
// the pool or in a tier, and none is written again.
//
// Thread rule: the engine's thread, but for the constructor and the destructor.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "engine/core.h"
#include "kv/cache.h"

namespace pagoda::engine {

// TierRemoval says what became of a tenant's pages in a tier.
struct TierRemoval {
  std::string tier;  // "pool" for the first
  Result<kv::Removal> outcome;
};

struct TenantRemoval {
  std::vector<TierRemoval> tiers;
  // Pages of the pool that running requests still hold. No other request finds them, they are
  // written nowhere, and they leave when those requests end.
  std::uint64_t pages_held = 0;
};

class TenantRemovals {
 public:
  // Called on the engine's thread; never, where the engine is dropped before.
  using Done = std::function<void(TenantRemoval)>;

  // All arguments must outlive the removals. `wake` is called by another thread when poll() has
  // something to do.
  TenantRemovals(const TierOptions& tiers, Core& core, kv::Cache& cache,
                 std::function<void()> wake);
  // Waits for a store that is removing.
  ~TenantRemovals();

  void begin(kv::OwnerId owner, Done done);
  // Continues the removals whose current act has ended.
  void poll();

 private:
  struct Removal {
    kv::OwnerId owner;
    Done done;
    std::uint64_t pages_left = 0;  // pages that left the pool
    std::vector<TierRemoval> stores = {};
  };

  void finish(Removal removal);
  void run();

  const TierOptions& tiers_;
  Core& core_;
  kv::Cache& cache_;
  std::function<void()> wake_;
  std::deque<Removal> waiting_;  // removals that wait for stores that copy a page out
  std::size_t removing_ = 0;     // removals given to the thread and not taken back

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Removal> queue_;   // under mutex_
  std::vector<Removal> ended_;  // under mutex_
  bool stopping_ = false;       // under mutex_
  std::thread thread_;          // runs since the first removal that stores take part in
};

}  // namespace pagoda::engine

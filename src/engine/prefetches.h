// Prefetches are requests that compute nothing: pages of their prompts come from tiers into the
// pool, and that is all. Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/finish_reason.h"
#include "engine/open_request.h"
#include "sched/tenant.h"

namespace pagoda::engine {

class Tiers;

class Prefetches {
 public:
  static constexpr std::size_t kPrefetchesMax = 256;

  // Is there a place for one more? One of several tenants may have as many as places are left.
  Status admit(const Request& request, const sched::TenantTable& tenants) const;
  void begin(std::unique_ptr<OpenRequest> prefetch, Tiers& tiers);
  // It ends with the next take_ended(); other ids are ignored.
  void cancel(RequestId id);

  struct Ended {
    std::unique_ptr<OpenRequest> prefetch;
    FinishReason reason;
    LoadRecord load;
  };
  // Takes those out that are over: every page that comes has come, there was no room, or it took
  // too long.
  std::vector<Ended> take_ended(Tiers& tiers, std::int64_t now_ns);
  // Nobody is told any more.
  void drop_all(Tiers& tiers);

  std::size_t size() const { return open_.size(); }

 private:
  std::vector<std::unique_ptr<OpenRequest>> open_;
};

}  // namespace pagoda::engine

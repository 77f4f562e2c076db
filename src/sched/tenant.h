// Who asks: limits, weight and the accounts that fairness and limits are kept by.
//
// Fair share is start-time fair queueing over computed tokens: a tenant's clock advances by the
// tokens computed for it divided by its weight, the tenant whose clock is behind is admitted next,
// and one that comes back from idling starts at the clock of the most backward busy tenant (of the
// most forward of all where nobody is busy), so that idling earns nothing and costs nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/strong_id.h"

namespace pagoda::sched {

using TenantId = StrongId<struct TenantTag, std::uint32_t>;

// 0 means no limit.
struct TenantLimits {
  double weight = 1.0;                      // of its fair share; above 0
  std::uint32_t sequences_running = 0;      // at once (a request for n sequences is n); more wait
  std::uint32_t requests_queued = 0;        // waiting; more are refused
  std::uint64_t kv_tokens = 0;              // held by its running sequences; more wait
  std::uint64_t tokens_per_minute = 0;      // prompts and answers; refused beyond
  std::uint64_t context_tokens = 0;         // prompt and answer together
  std::uint64_t output_tokens = 0;          // of one answer
  std::uint64_t output_tokens_default = 0;  // where a request does not say; 0: what fits
};

// Since the start.
struct TenantUse {
  std::uint64_t requests_finished = 0;
  std::uint64_t requests_refused = 0;
  std::uint64_t prompt_tokens = 0;  // of prompts that were computed
  std::uint64_t prompt_tokens_cached = 0;
  std::uint64_t output_tokens = 0;
};

struct Tenant {
  std::string name;
  TenantLimits limits;
  std::uint64_t sequences_running = 0;
  std::uint64_t requests_queued = 0;
  std::uint64_t asked_step = 0;  // when it last asked; 0: never
  std::uint64_t kv_tokens_held = 0;
  std::uint64_t tokens_computed = 0;
  double clock = 0;               // tokens computed / weight
  double minute_tokens_left = 0;  // negative: overdrawn by answers
  std::int64_t minute_at_ns = 0;
  TenantUse use;

  bool busy() const { return sequences_running + requests_queued > 0; }
};

class TenantTable {
 public:
  // Tenant 0 exists from the start, without limits.
  TenantTable();

  TenantId add(std::string name, const TenantLimits& limits);
  // From now on. What runs stays as it is, and so does what waits: where it needs more than the new
  // limits, it runs when nothing else of the tenant does.
  void change(TenantId id, const TenantLimits& limits);
  std::size_t size() const { return tenants_.size(); }
  Tenant& operator[](TenantId id) { return tenants_[id.value()]; }
  const Tenant& operator[](TenantId id) const { return tenants_[id.value()]; }

  // The door: may a prompt of this many tokens enter the queue now? The error names the limit.
  Status admit(TenantId id, std::uint64_t prompt_tokens, std::int64_t now_ns);

  // A request enters the queue: its prompt counts against the minute, and a tenant that was idle
  // catches up with the busy ones.
  void enter(TenantId id, std::uint64_t prompt_tokens);
  // Tokens were computed for a tenant.
  void charge_tokens(TenantId id, std::uint64_t tokens);
  // Answer tokens were chosen for it.
  void charge_output(TenantId id, std::uint64_t tokens);

 private:
  void refill_minute(Tenant& tenant, std::int64_t now_ns) const;

  std::vector<Tenant> tenants_;
};

}  // namespace pagoda::sched

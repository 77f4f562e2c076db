// A Tenant is a client with limits, a weight, and the counters that fair sharing and limits use.
//
// Fair sharing is start-time fair queueing over computed tokens. A tenant's clock advances by the
// tokens computed for the tenant divided by its weight, and the tenant with the earliest clock is
// admitted next. A tenant that was idle restarts no earlier than the earliest clock of the busy
// tenants (than the latest clock of all where no tenant is busy), so that idling earns nothing and
// costs nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/strong_id.h"

namespace pagoda::sched {

using TenantId = StrongId<struct TenantTag, std::uint32_t>;

// A limit of 0 means no limit.
struct TenantLimits {
  double weight = 1.0;                      // weight of the fair share; above 0
  std::uint32_t sequences_running = 0;      // at once (n for a request with n); more wait
  std::uint32_t requests_queued = 0;        // requests that have not run yet; more are refused
  std::uint64_t kv_tokens = 0;              // KV tokens of running sequences; more wait
  std::uint64_t tokens_per_minute = 0;      // prompt and output tokens; more are refused
  std::uint64_t context_tokens = 0;         // prompt and output of one sequence
  std::uint64_t output_tokens = 0;          // output of one sequence
  std::uint64_t output_tokens_default = 0;  // for requests that set none; 0: the server's
};

// Totals since the start.
struct TenantUse {
  std::uint64_t requests_finished = 0;
  std::uint64_t requests_refused = 0;
  std::uint64_t prompt_tokens = 0;  // tokens of prompts that were computed
  std::uint64_t prompt_tokens_cached = 0;
  std::uint64_t output_tokens = 0;
};

struct Tenant {
  std::string name;
  TenantLimits limits;
  std::uint64_t sequences_running = 0;
  std::uint64_t requests_queued = 0;      // sequences that have not run yet
  std::uint64_t sequences_preempted = 0;  // waiting or parked after they ran
  std::uint64_t asked_step = 0;           // step of the last request; 0: never
  std::uint64_t kv_tokens_held = 0;
  std::uint64_t tokens_computed = 0;
  double clock = 0;               // tokens computed / weight
  double minute_tokens_left = 0;  // negative: overdrawn by output tokens
  std::int64_t minute_at_ns = 0;
  TenantUse use;

  bool busy() const { return sequences_running + sequences_waiting() > 0; }
  std::uint64_t sequences_waiting() const { return requests_queued + sequences_preempted; }
};

class TenantTable {
 public:
  // Adds tenant 0, "default", without limits.
  TenantTable();

  TenantId add(std::string name, const TenantLimits& limits);
  // Sets the limits from now on. Running and waiting sequences stay: a waiting sequence that
  // exceeds the new limits runs when no other sequence of the tenant does.
  void change(TenantId id, const TenantLimits& limits);
  std::size_t size() const { return tenants_.size(); }
  Tenant& operator[](TenantId id) { return tenants_[id.value()]; }
  const Tenant& operator[](TenantId id) const { return tenants_[id.value()]; }

  // Checks whether a prompt of this many tokens may enter the queue now. The error names the limit.
  Status admit(TenantId id, std::uint64_t prompt_tokens, std::int64_t now_ns);

  // Counts a request that enters the queue: the prompt counts against the tokens per minute, and
  // the clock of a tenant that was idle catches up with the busy tenants.
  void enter(TenantId id, std::uint64_t prompt_tokens);
  // Advances the tenant's clock by tokens computed for the tenant.
  void charge_tokens(TenantId id, std::uint64_t tokens);
  // Counts tokens that enter no queue against the tokens per minute: sampled ones, and prompts of
  // requests that compute nothing.
  void charge_minute(TenantId id, std::uint64_t tokens);

 private:
  void refill_minute(Tenant& tenant, std::int64_t now_ns) const;

  std::vector<Tenant> tenants_;
};

}  // namespace pagoda::sched

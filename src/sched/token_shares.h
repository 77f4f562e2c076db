// TokenShares divide the prefill tokens of one step among tenants.
//
// Every tenant that wants tokens, at the most urgent priority, is guaranteed a quarter of its fair
// share by weight, and at least one token while any is left. The other tokens go first to tenants
// that want little (at most a quarter of what the most demanding tenant wants), so that a flood of
// long prompts delays a short prompt by a fraction of the short prompt's own cost. Then the tokens
// go to tenants with the earliest clocks, so that tenants that all want much share by weight in the
// long run.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sched/sequence_task.h"
#include "sched/tenant.h"

namespace pagoda::sched {

class TokenShares {
 public:
  // Starts a step. Call add() for the tokens that tenants want, then divide().
  void clear(const TenantTable& tenants);
  // Adds tokens that prompts of the tenant want; `priority` is the priority of the most urgent
  // prompt. Tokens of prompts that cannot start now count towards wanting much, but get nothing set
  // aside.
  void add(TenantId tenant, std::uint64_t tokens, std::int32_t priority, bool can_start);
  void divide(const TenantTable& tenants, std::uint64_t tokens);

  // Returns how many tokens the tenant may still take.
  std::uint64_t left(TenantId tenant) const { return shares_[tenant.value()].tokens + spare_; }
  void take(TenantId tenant, std::uint64_t tokens);
  // Cancels all shares: any tenant may take from `tokens`.
  void free_all(std::uint64_t tokens);
  // Returns true when the tenant wants little compared with the most demanding one.
  bool wants_little(TenantId tenant) const { return shares_[tenant.value()].wants_little; }

 private:
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

  struct Share {
    std::uint64_t tokens_known = 0;   // tokens of all prompts
    std::uint64_t tokens_wanted = 0;  // tokens of prompts that can start
    std::int32_t priority = kNever;   // most urgent priority of prompts that can start
    bool wants_little = false;
    std::uint64_t tokens = 0;  // set aside for the tenant
  };

  void set_aside(Share& share, std::uint64_t tokens);

  std::vector<Share> shares_;           // [tenant]
  std::vector<std::uint32_t> wanting_;  // tenants with the most urgent prompts
  std::uint64_t spare_ = 0;             // tokens that any tenant may take
};

}  // namespace pagoda::sched

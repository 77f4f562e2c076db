// How tenants share the prompt tokens of one step.
//
// Every tenant that wants tokens is sure of a quarter of its fair share by weight. What is left
// goes first to tenants that want little (a quarter of what the one that wants most does, or less),
// so that a flood delays a question by a fraction of what the question costs; then to those whose
// clock is behind, so that tenants that all want much share by weight in the long run.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sched/sequence_task.h"
#include "sched/tenant.h"

namespace pagoda::sched {

class TokenShares {
 public:
  // Of one tenant for one step: clear(), then add() for what it wants, then divide().
  void clear(const TenantTable& tenants);
  // Tokens that prompts of the tenant want, the most urgent of them so urgent. What cannot start
  // now makes a tenant one that wants much, but gets no tokens set aside.
  void add(TenantId tenant, std::uint64_t tokens, std::int32_t priority, bool can_start);
  void divide(const TenantTable& tenants, std::uint64_t tokens);

  // Tokens that the tenant may still get.
  std::uint64_t left(TenantId tenant) const { return shares_[tenant.value()].tokens + spare_; }
  void take(TenantId tenant, std::uint64_t tokens);
  // From now on so many tokens are for whoever comes.
  void free_all(std::uint64_t tokens);
  // Does the tenant want little beside the others?
  bool wants_little(TenantId tenant) const { return shares_[tenant.value()].wants_little; }

 private:
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

  struct Share {
    std::uint64_t tokens_known = 0;   // of all its prompts
    std::uint64_t tokens_wanted = 0;  // of those that can start
    std::int32_t priority = kNever;   // of the most urgent of these
    bool wants_little = false;
    std::uint64_t tokens = 0;  // set aside for it
  };

  void set_aside(Share& share, std::uint64_t tokens);

  std::vector<Share> shares_;           // [tenant]
  std::vector<std::uint32_t> wanting_;  // the most urgent tenants
  std::uint64_t spare_ = 0;             // for whoever comes
};

}  // namespace pagoda::sched

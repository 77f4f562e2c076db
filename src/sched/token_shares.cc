#include "sched/token_shares.h"

#include <algorithm>

namespace pagoda::sched {
namespace {

constexpr std::uint64_t kLittle = 4;  // a tenant wants little if another wants 4 times as much
constexpr double kSurePart = 0.25;    // guaranteed part of a fair share

}  // namespace

void TokenShares::clear(const TenantTable& tenants) {
  shares_.assign(tenants.size(), {});
  spare_ = 0;
}

void TokenShares::add(TenantId tenant, std::uint64_t tokens, std::int32_t priority,
                      bool can_start) {
  Share& share = shares_[tenant.value()];
  share.tokens_known += tokens;
  if (!can_start) return;
  share.tokens_wanted += tokens;
  share.priority = std::min(share.priority, priority);
}

void TokenShares::divide(const TenantTable& tenants, std::uint64_t tokens) {
  std::int32_t urgent = kNever;
  std::uint64_t most = 0;
  for (const Share& share : shares_) {
    urgent = std::min(urgent, share.priority);
    most = std::max(most, share.tokens_known);
  }
  wanting_.clear();
  double weights = 0;
  for (std::uint32_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    share.wants_little = share.tokens_known <= most / kLittle;
    if (share.tokens_wanted == 0 || share.priority != urgent) continue;
    wanting_.push_back(i);
    weights += tenants[TenantId(i)].limits.weight;
  }
  std::sort(wanting_.begin(), wanting_.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (shares_[a].wants_little != shares_[b].wants_little) return shares_[a].wants_little;
    const double clock_a = tenants[TenantId(a)].clock;
    const double clock_b = tenants[TenantId(b)].clock;
    return clock_a != clock_b ? clock_a < clock_b : a < b;
  });
  spare_ = tokens;
  for (const std::uint32_t i : wanting_) {
    const double part = kSurePart * tenants[TenantId(i)].limits.weight / weights;
    const auto sure = static_cast<std::uint64_t>(part * static_cast<double>(tokens));
    set_aside(shares_[i], std::max<std::uint64_t>(1, sure));
  }
  for (const std::uint32_t i : wanting_) set_aside(shares_[i], tokens);
}

void TokenShares::set_aside(Share& share, std::uint64_t tokens) {
  const std::uint64_t given = std::min({tokens, spare_, share.tokens_wanted - share.tokens});
  share.tokens += given;
  spare_ -= given;
}

void TokenShares::free_all(std::uint64_t tokens) {
  for (Share& share : shares_) share.tokens = 0;
  spare_ = tokens;
}

void TokenShares::take(TenantId tenant, std::uint64_t tokens) {
  Share& share = shares_[tenant.value()];
  const std::uint64_t own = std::min(tokens, share.tokens);
  share.tokens -= own;
  spare_ -= tokens - own;
}

}  // namespace pagoda::sched

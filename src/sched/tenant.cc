#include "sched/tenant.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace pagoda::sched {

TenantTable::TenantTable() { add("default", {}); }

TenantId TenantTable::add(std::string name, const TenantLimits& limits) {
  ASSERT(limits.weight > 0, "a share has a size");
  tenants_.push_back({.name = std::move(name),
                      .limits = limits,
                      .minute_tokens_left = static_cast<double>(limits.tokens_per_minute),
                      .use = {}});
  return TenantId(static_cast<std::uint32_t>(tenants_.size() - 1));
}

void TenantTable::change(TenantId id, const TenantLimits& limits) {
  ASSERT(limits.weight > 0, "a share has a size");
  Tenant& tenant = (*this)[id];
  const auto whole = static_cast<double>(limits.tokens_per_minute);
  // Without a limit the balance was never refilled, so a new limit starts with a full minute.
  tenant.minute_tokens_left =
      tenant.limits.tokens_per_minute == 0 ? whole : std::min(tenant.minute_tokens_left, whole);
  tenant.limits = limits;
}

Status TenantTable::admit(TenantId id, std::uint64_t prompt_tokens, std::int64_t now_ns) {
  Tenant& tenant = (*this)[id];
  const TenantLimits& limits = tenant.limits;
  if (limits.requests_queued > 0 && tenant.requests_queued >= limits.requests_queued) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("tenant {} has {} requests waiting, its limit is {}", tenant.name,
                             tenant.requests_queued, limits.requests_queued)};
  }
  if (limits.tokens_per_minute == 0) return ok_status();
  if (prompt_tokens > limits.tokens_per_minute) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("the prompt has {} tokens, tenant {} may use {} tokens per minute",
                             prompt_tokens, tenant.name, limits.tokens_per_minute)};
  }
  refill_minute(tenant, now_ns);
  const double left = tenant.minute_tokens_left;
  if (static_cast<double>(prompt_tokens) > left) {
    return Error{
        ErrorCode::kExhausted,
        fmt::format("the prompt has {} tokens, tenant {} has {:.0f} left of its limit of "
                    "{} tokens per minute",
                    prompt_tokens, tenant.name, std::max(0.0, left), limits.tokens_per_minute)};
  }
  return ok_status();
}

void TenantTable::enter(TenantId id, std::uint64_t prompt_tokens) {
  Tenant& tenant = (*this)[id];
  if (!tenant.busy()) {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (const Tenant& other : tenants_) {
      if (other.busy()) least = std::min(least, other.clock);
      most = std::max(most, other.clock);
    }
    // Where no tenant is busy, this tenant starts at the latest clock: tokens that other tenants
    // computed while nobody else wanted any are not held against those tenants.
    const bool is_first = least == std::numeric_limits<double>::infinity();
    tenant.clock = std::max(tenant.clock, is_first ? most : least);
  }
  tenant.minute_tokens_left -= static_cast<double>(prompt_tokens);
}

void TenantTable::charge_tokens(TenantId id, std::uint64_t tokens) {
  Tenant& tenant = (*this)[id];
  tenant.tokens_computed += tokens;
  tenant.clock += static_cast<double>(tokens) / tenant.limits.weight;
}

void TenantTable::charge_minute(TenantId id, std::uint64_t tokens) {
  (*this)[id].minute_tokens_left -= static_cast<double>(tokens);
}

void TenantTable::refill_minute(Tenant& tenant, std::int64_t now_ns) const {
  const auto whole = static_cast<double>(tenant.limits.tokens_per_minute);
  const double minutes = static_cast<double>(now_ns - tenant.minute_at_ns) / 60e9;
  tenant.minute_tokens_left = std::min(whole, tenant.minute_tokens_left + minutes * whole);
  tenant.minute_at_ns = now_ns;
}

}  // namespace pagoda::sched

#include "server/access/key_ring.h"

#include <algorithm>
#include <cctype>

#include "server/access/tenant_salt.h"

namespace pagoda::server {
namespace {

// Returns the token of "Bearer TOKEN"; schemes are compared without regard to case.
std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  const bool is_bearer =
      authorization.size() > kScheme.size() &&
      std::equal(kScheme.begin(), kScheme.end(), authorization.begin(), [](char a, char b) {
        return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
      });
  if (!is_bearer) return {};
  authorization.remove_prefix(kScheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  return authorization;
}

}  // namespace

std::string Caller::salt(std::string_view cache_salt) const {
  return keys ? tenant_salt(keys->secret(), tenant_name, cache_salt) : std::string(cache_salt);
}

engine::TenantId TenantRegistry::register_tenant(const ListedTenant& tenant) {
  auto known = std::find_if(tenants_.begin(), tenants_.end(),
                            [&](const auto& other) { return other.name == tenant.name; });
  if (known == tenants_.end()) known = tenants_.insert(known, {.name = tenant.name, .limits = {}});
  known->limits = tenant.limits;
  return engine::TenantId(static_cast<std::uint32_t>(known - tenants_.begin()) + 1);
}

std::shared_ptr<const KeyRing> KeyRing::make(const KeyList& list, TenantRegistry& tenants,
                                             std::string secret) {
  const auto ring = std::make_shared<KeyRing>();
  ring->secret_ = std::move(secret);
  ring->tenants_ = list.tenants;
  std::vector<engine::TenantId> ids;
  for (const ListedTenant& tenant : list.tenants) ids.push_back(tenants.register_tenant(tenant));
  for (const ListedKey& key : list.keys) {
    Caller caller = {.is_known = true,
                     .is_admin = key.is_admin,
                     .may_publish = key.may_publish,
                     .tenant_name = key.tenant};
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (list.tenants[i].name != key.tenant) continue;
      caller.tenant = ids[i];
      caller.priority_min = list.tenants[i].priority_min;
      caller.context_tokens = engine::tenant_context(list.tenants[i].limits);
      caller.output_tokens = list.tenants[i].limits.output_tokens;
    }
    ring->entries_.push_back({key.digest, std::move(caller)});
  }
  return ring;
}

Caller KeyRing::find(std::string_view key) const {
  const Digest digest = sha256(key);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (equal_in_constant_time(entry.digest, digest)) found = &entry;
  }
  if (found == nullptr) return {};
  Caller caller = found->caller;
  caller.keys = shared_from_this();
  return caller;
}

std::size_t KeyRing::keys_of(std::string_view tenant) const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [&](const Entry& entry) { return entry.caller.tenant_name == tenant; }));
}

ListedKey key_for_everything(std::string_view key) {
  return {.digest = sha256(key),
          .tenant = std::string(kDefaultTenant),
          .may_publish = true,
          .is_admin = true};
}

Caller identify(std::string_view authorization, const std::shared_ptr<const KeyRing>& keys) {
  const std::string_view key = bearer_token(authorization);
  if (keys) return key.empty() ? Caller{} : keys->find(key);
  return {.is_known = true,
          .is_admin = true,
          .may_publish = true,
          .tenant_name = std::string(kDefaultTenant)};
}

}  // namespace pagoda::server

#include <algorithm>

#include "server/api/endpoints.h"

namespace pagoda::server {
namespace {

// A limit of 0 means no limit and is left out.
void add_limit(Json& tenant, const char* name, std::uint64_t limit) {
  if (limit > 0) tenant[name] = limit;
}

// Adds the tenant's current use, at most 0.1 s old.
void add_use(Json& tenant, const std::vector<engine::TenantStats>& now) {
  const auto& name = tenant["name"].get_ref<const std::string&>();
  const auto same = [&](const engine::TenantStats& one) { return one.name == name; };
  const auto found = std::find_if(now.begin(), now.end(), same);
  const engine::TenantStats use = found == now.end() ? engine::TenantStats{} : *found;
  tenant["now"] = {{"answers_running", use.sequences_running},
                   {"requests_waiting", use.requests_queued},
                   {"kv_tokens", use.kv_tokens_held},
                   {"kv_blocks", use.blocks_cached}};
}

Json tenant_json(const ListedTenant& tenant, std::size_t keys) {
  const engine::TenantLimits& limits = tenant.limits;
  Json json = {{"name", tenant.name},
               {"keys", keys},
               {"weight", limits.weight},
               {"priority_min", tenant.priority_min}};
  add_limit(json, "answers_running", limits.sequences_running);
  add_limit(json, "requests_queued", limits.requests_queued);
  add_limit(json, "kv_tokens", limits.kv_tokens);
  add_limit(json, "tokens_per_minute", limits.tokens_per_minute);
  add_limit(json, "context_tokens", limits.context_tokens);
  add_limit(json, "output_tokens", limits.output_tokens);
  add_limit(json, "output_tokens_default", limits.output_tokens_default);
  return json;
}

}  // namespace

Json list_tenants(const KeyRing* keys, const std::vector<engine::TenantStats>& now) {
  Json data = Json::array();
  const std::size_t unnamed = keys == nullptr ? 0 : keys->keys_of(kDefaultTenant);
  if (keys == nullptr || unnamed > 0) {
    data.push_back({{"name", kDefaultTenant}, {"keys", unnamed}, {"weight", 1.0}});
  }
  if (keys != nullptr) {
    for (const ListedTenant& tenant : keys->tenants()) {
      data.push_back(tenant_json(tenant, keys->keys_of(tenant.name)));
    }
  }
  for (Json& tenant : data) add_use(tenant, now);
  return {{"object", "list"}, {"data", std::move(data)}};
}

}  // namespace pagoda::server

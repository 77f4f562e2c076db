#include <fmt/format.h>

#include <algorithm>

#include "server/api/endpoints.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

Json removal_json(const engine::TierRemoval& removal) {
  Json json = {{"tier", removal.tier}};
  if (!removal.outcome.ok()) {
    json["error"] = removal.outcome.error().message;
    return json;
  }
  const auto& removed = removal.outcome.value();
  json["blocks"] = removed.pages;
  json["bytes"] = removed.bytes;
  json["overwritten"] = removed.overwritten;
  if (!removed.note.empty()) json["note"] = removed.note;
  return json;
}

}  // namespace

Json remove_tenant(const ServedModel& model, const std::string& name) {
  const std::vector<engine::TenantPicture> tenants = model.engine.tenants();
  const auto found =
      std::find_if(tenants.begin(), tenants.end(),
                   [&](const engine::TenantPicture& tenant) { return tenant.name == name; });
  if (found == tenants.end()) {
    throw ApiError(404, fmt::format("tenant \"{}\": there is none of this name", name), {},
                   "not_found");
  }
  const engine::TenantId id(static_cast<std::uint32_t>(found - tenants.begin()));
  Json tiers = Json::array();
  bool all = true;
  for (engine::TierRemoval& removal : model.engine.remove_tenant(id)) {
    // A block of memory has the size of all its pages together.
    if (removal.tier == "pool" && removal.outcome.ok()) {
      removal.outcome.value().bytes = removal.outcome.value().pages * model.block_bytes;
    }
    all = all && removal.outcome.ok();
    tiers.push_back(removal_json(removal));
  }
  return {{"tenant", name}, {"removed_everywhere", all}, {"tiers", std::move(tiers)}};
}

}  // namespace pagoda::server

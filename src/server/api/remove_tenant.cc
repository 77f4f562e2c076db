#include <fmt/format.h>

#include <algorithm>

#include "server/api/endpoints.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

std::string_view told_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnsupported:
      return "nothing can be removed there";
    case ErrorCode::kExhausted:
      return "it takes too long";
    default:
      return "removing failed";
  }
}

Json removal_json(const engine::TierRemoval& removal, RequestLog& log) {
  Json json = {{"tier", removal.tier}};
  if (!removal.outcome.ok()) {
    const Error& error = removal.outcome.error();
    log.write(Failure{.where = fmt::format("removing a tenant from {}", removal.tier),
                      .what = error.message});
    json["error"] = fmt::format("{}; the server's log says why", told_of(error.code));
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

HttpReply tell_removal(const std::string& name, std::uint64_t block_bytes,
                       engine::TenantRemoval removal, RequestLog& log) {
  Json tiers = Json::array();
  bool all = removal.pages_held == 0;
  for (engine::TierRemoval& tier : removal.tiers) {
    const bool is_pool = tier.tier == "pool";
    // A block of memory has the size of all its pages together.
    if (is_pool) tier.outcome.value().bytes = tier.outcome.value().pages * block_bytes;
    all = all && tier.outcome.ok();
    Json json = removal_json(tier, log);
    if (is_pool && removal.pages_held > 0) {
      json["blocks_pending"] = removal.pages_held;
      json["note"] =
          "requests that run hold the pending blocks: nobody else finds them, no tier gets them, "
          "and they go when those requests end";
    }
    tiers.push_back(std::move(json));
  }
  return json_reply({{"tenant", name}, {"removed_everywhere", all}, {"tiers", std::move(tiers)}});
}

std::unique_ptr<DeferredReply> remove_tenant(const ServedModel& model, const std::string& name,
                                             RequestLog& log) {
  const std::vector<engine::TenantStats> tenants = model.engine.tenants();
  const auto found =
      std::find_if(tenants.begin(), tenants.end(),
                   [&](const engine::TenantStats& tenant) { return tenant.name == name; });
  if (found == tenants.end()) {
    throw ApiError(404, fmt::format("tenant \"{}\": there is none of this name", name), {},
                   "not_found");
  }
  const engine::TenantId id(static_cast<std::uint32_t>(found - tenants.begin()));
  return std::make_unique<DeferredReply>([&served = model.engine, id, name,
                                          block_bytes = model.block_bytes,
                                          &log](const DeferredReply::Give& give) {
    served.remove_tenant(id, [name, block_bytes, give, &log](engine::TenantRemoval removal) {
      give([name, block_bytes, removal = std::move(removal), &log] {
        return tell_removal(name, block_bytes, removal, log);
      });
    });
  });
}

}  // namespace pagoda::server

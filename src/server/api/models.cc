#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "engine/snapshot.h"
#include "kv/retained_accounts.h"
#include "server/api/cache_advice.h"
#include "server/api/endpoints.h"

namespace pagoda::server {
namespace {

// Counts requests by the reason that ended their match, with the prompt tokens computed for them.
Json misses_json(const kv::MissCounters& misses) {
  Json reasons = Json::object();
  for (std::size_t i = 0; i < kv::kMissReasons; ++i) {
    const auto reason = static_cast<kv::MissReason>(i);
    reasons[std::string(kv::reason_name(reason))] = {{"requests", misses[reason].requests},
                                                     {"tokens", misses[reason].tokens}};
  }
  return reasons;
}

Json model_json(const ServedModel& model, const std::string& name) {
  return {
      {"id", name},           {"object", "model"},    {"created", model.created_s},
      {"owned_by", "pagoda"}, {"root", model.name()}, {"max_model_len", model.context_tokens()}};
}

Json anthropic_model_json(const ServedModel& model, const std::string& name) {
  return {{"type", "model"},
          {"id", name},
          {"display_name", name},
          {"created_at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                                     fmt::gmtime(static_cast<std::time_t>(model.created_s)))},
          {"max_input_tokens", model.context_tokens()}};
}

// Tenants by name; regions that no tenant owns count together, as grants are told apart: public
// or private.
Json retaining_tenants(const ServedModel& model, const std::vector<kv::RegionStats>& accounts) {
  std::map<std::string, std::uint64_t> blocks;
  for (const kv::RegionStats& account : accounts) {
    const bool is_owned = account.owner != kv::kNoOwner;
    blocks[is_owned ? model.engine.tenant_name(engine::TenantId(account.owner.value()))
           : account.region == kv::kPublicAccount.value() ? "public"
                                                          : "private"] += account.blocks;
  }
  Json tenants = Json::array();
  for (const auto& [tenant, count] : blocks) {
    tenants.push_back({{"tenant", tenant}, {"blocks", count}});
  }
  return tenants;
}

Json retained_json(const ServedModel& model, const std::vector<kv::RegionStats>& accounts) {
  const std::int64_t now_ns = model.engine.now_ns();
  const engine::Snapshot now = model.engine.snapshot();
  std::uint64_t blocks = 0;
  Json grants = Json::array();
  for (const kv::GrantStats& grant : model.engine.retained()) {
    blocks += grant.blocks;
    grants.push_back({{"tenant", grant.is_public ? "public" : "private"},
                      {"blocks", grant.blocks},
                      {"priority", grant.priority},
                      {"seconds_left", static_cast<double>(grant.until_ns - now_ns) * 1e-9}});
  }
  return {{"blocks_all", now.blocks_all},
          {"blocks_retained", blocks},
          {"blocks_retained_max", now.blocks_all / 2},
          {"blocks_per_tenant_max", model.engine.retain_blocks_max()},
          {"tenants", retaining_tenants(model, accounts)},
          {"grants", std::move(grants)}};
}

}  // namespace

Json list_models(const ServedModel& model) {
  Json data = Json::array();
  for (const std::string& name : model.names) data.push_back(model_json(model, name));
  return {{"object", "list"}, {"data", std::move(data)}};
}

Json list_models_for_anthropic(const ServedModel& model) {
  Json data = Json::array();
  for (const std::string& name : model.names) data.push_back(anthropic_model_json(model, name));
  return {{"data", std::move(data)},
          {"has_more", false},
          {"first_id", model.names.front()},
          {"last_id", model.names.back()}};
}

Json describe_model_for_anthropic(const ServedModel& model, const std::string& id) {
  check_model_name(id, model);
  return anthropic_model_json(model, id);
}

Json describe_model(const ServedModel& model, const std::string& id) {
  check_model_name(id, model);
  return model_json(model, id);
}

Json describe_server(const ServedModel& model, const std::string& version) {
  const engine::Snapshot now = model.engine.snapshot();
  Json info = {{"version", version},
               {"model", model.name()},
               {"served_model_names", model.names},
               {"fingerprint", model.fingerprint},
               {"max_model_len", model.context_tokens()},
               {"max_output_tokens", model.engine.limits().output_tokens_default},
               {"max_num_seqs", model.engine.limits().sequences_max},
               {"vocabulary", model.engine.limits().vocabulary},
               {"chat_template", model.chat_template.has_value()}};
  info.update(model.facts);
  info["now"] = {{"answers_running", now.sequences_running},
                 {"requests_waiting", now.requests_waiting},
                 {"blocks_all", now.blocks_all},
                 {"blocks_free", now.blocks_free},
                 {"blocks_idle", now.blocks_idle},
                 {"blocks_retained", now.blocks_retained}};
  info["since_start"] = {{"steps", now.steps},
                         {"rows_computed", now.tokens_computed},
                         {"prompt_tokens", now.prompt_tokens},
                         {"prompt_tokens_cached", now.prompt_tokens_cached},
                         {"answer_tokens", now.output_tokens},
                         {"preemptions", now.preemptions},
                         {"requests_finished", now.requests_finished},
                         {"requests_refused", now.requests_refused},
                         {"blocks_evicted", now.blocks_evicted},
                         {"blocks_joined", now.blocks_deduplicated},
                         {"misses", misses_json(now.misses)}};
  Json tiers = Json::array();
  for (const engine::TierStats& tier : model.engine.tiers()) {
    tiers.push_back({{"tier", tier.name},
                     {"on", tier.stats.is_on},
                     {"takes_writes", tier.takes_writes},
                     {"ready", tier.stats.is_ready},
                     {"condition", tier.stats.condition},
                     {"bytes", tier.stats.bytes_used},
                     {"bytes_max", tier.stats.bytes_max},
                     {"pages", tier.stats.pages},
                     {"pages_read", tier.stats.pages_read},
                     {"pages_written", tier.stats.pages_written}});
  }
  info["tiers"] = std::move(tiers);
  info["advice"] = describe_advice(model, model.engine.curve());
  return info;
}

std::unique_ptr<DeferredReply> list_retained(const ServedModel& model, CacheLooks& looks) {
  return std::make_unique<DeferredReply>([&model, &looks](DeferredReply::Give give) {
    const auto look = [&model](kv::Cache& cache) -> DeferredReply::Make {
      return [&model, accounts = kv::retained_by_account(cache)] {
        return json_reply(retained_json(model, accounts));
      };
    };
    looks.ask(model.engine, look, std::move(give));
  });
}

Json reset_prefix_cache(const ServedModel& model, const Caller& caller) {
  model.engine.reset(caller.is_admin ? std::nullopt : std::optional(caller.tenant));
  return {{"success", true}};
}

}  // namespace pagoda::server

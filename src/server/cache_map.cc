#include "server/cache_map.h"

#include "base/clock.h"

namespace pagoda::server {
namespace {

// The limits are lower than a one-time tool would want, because the engine waits for the snapshot.
constexpr kv::MapLimits map_limits(bool draws_private) {
  return {.blocks_max = 8192, .nodes_max = 8192, .private_tokens = draws_private};
}

Json cell_json(const kv::BlockCell& cell) {
  Json region = nullptr;
  if (cell.region != kv::BlockCell::kNoRegion) region = cell.region;
  return Json::array({cell.free, cell.active, cell.idle, std::move(region)});
}

Json branch_json(const kv::BranchStats& branch, const text::Tokenizer& tokenizer,
                 ReadableText readable) {
  std::string text;
  for (const std::uint32_t token : branch.tokens) text += tokenizer.bytes_of(TokenId(token));
  const bool is_shown = may_read(readable, branch.is_public);
  return {{"level", branch.level},       {"text", is_shown ? Json(text) : Json(nullptr)},
          {"tokens", branch.tokens_own}, {"blocks", branch.blocks},
          {"public", branch.is_public},  {"held", branch.is_held}};
}

}  // namespace

std::shared_ptr<const CacheMapReader::Snapshot> CacheMapReader::read(engine::Engine& engine) {
  const std::lock_guard lock(shared_->mutex);
  const std::shared_ptr<const Snapshot>& last = shared_->snapshot;
  if (!shared_->asked && (!last || engine.now_ns() - last->at_ns >= kRefreshNs)) {
    engine.post(
        [shared = shared_, &engine, limits = map_limits(shared_->draws_private)](auto& cache) {
          auto next =
              std::make_shared<const Snapshot>(Snapshot{build_map(cache, limits), engine.now_ns()});
          const std::lock_guard hold(shared->mutex);
          shared->snapshot.swap(next);
          shared->asked = false;
        });
    // After the calls that may throw, because the engine's thread waits for this lock.
    shared_->asked = true;
  }
  return last;
}

Json describe_map(const ServedModel& model, CacheMapReader& reader, ReadableText readable) {
  const engine::Snapshot now = model.engine.snapshot();
  Json map = {{"blocks",
               {{"all", now.blocks_all},
                {"free", now.blocks_free},
                {"active", now.blocks_active()},
                {"reusable", now.blocks_idle}}}};
  const std::shared_ptr<const CacheMapReader::Snapshot> snapshot = reader.read(model.engine);
  if (!snapshot) {
    map["age_s"] = nullptr;
    return map;
  }
  map["age_s"] = seconds_between(snapshot->at_ns, model.engine.now_ns());
  map["blocks_per_cell"] = snapshot->map.blocks_per_cell;
  Json cells = Json::array();
  for (const kv::BlockCell& cell : snapshot->map.cells) cells.push_back(cell_json(cell));
  map["cells"] = std::move(cells);
  Json regions = Json::array();
  for (const kv::RegionStats& region : snapshot->map.regions) {
    Json tenant = nullptr;
    if (region.owner != kv::kNoOwner) {
      tenant = model.engine.tenant_name(engine::TenantId(region.owner.value()));
    }
    regions.push_back(
        {{"region", region.region}, {"tenant", std::move(tenant)}, {"blocks", region.blocks}});
  }
  map["regions"] = std::move(regions);
  Json branches = Json::array();
  for (const kv::BranchStats& branch : snapshot->map.branches) {
    branches.push_back(branch_json(branch, model.tokenizer, readable));
  }
  map["branches"] = std::move(branches);
  map["nodes"] = snapshot->map.nodes;
  map["nodes_seen"] = snapshot->map.nodes_seen;
  return map;
}

}  // namespace pagoda::server

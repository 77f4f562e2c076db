#include "server/cache_branch.h"

#include <fmt/format.h>

#include <charconv>
#include <new>
#include <vector>

#include "kv/cache_snapshot.h"
#include "server/api_error.h"
#include "server/json.h"

namespace pagoda::server {
namespace {

// Blocks that go next are told apart, the soonest first, up to so many.
constexpr std::size_t kLeavingMax = 32;

std::optional<kv::NodeId> read_node(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::uint32_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [read_to, error] = std::from_chars(text->data(), end, value);
  if (text->empty() || error != std::errc() || read_to != end) {
    throw ApiError(400, fmt::format("node: is \"{}\", expected the number of a branch", *text),
                   "node");
  }
  return kv::NodeId(value);
}

Json optional_json(const auto& value) { return value ? Json(*value) : Json(nullptr); }

// Tokens of a private branch belong to its tenant.
Json branch_json(const kv::BranchDetails& branch, const ServedModel& model, ReadableText readable) {
  Json text = nullptr;
  if (may_read(readable, branch.is_public)) {
    std::string bytes;
    for (const std::uint32_t token : branch.tokens) {
      bytes += model.tokenizer.bytes_of(TokenId(token));
    }
    text = std::move(bytes);
  }
  Json tenant = nullptr;
  if (branch.owner != kv::kNoOwner) {
    tenant = model.engine.tenant_name(engine::TenantId(branch.owner.value()));
  }
  Json idle_s = nullptr;
  if (branch.idle_ns) idle_s = static_cast<double>(*branch.idle_ns) * 1e-9;
  return {{"node", branch.node.value()},
          {"text", std::move(text)},
          {"tokens", branch.tokens_own},
          {"blocks_own", branch.blocks_own},
          {"blocks", branch.blocks},
          {"branches", branch.branches},
          {"public", branch.is_public},
          {"tenant", std::move(tenant)},
          {"sequences", branch.sequences},
          {"idle_s", std::move(idle_s)},
          {"retained", branch.is_retained},
          {"superseded", branch.is_superseded},
          {"eviction_rank", optional_json(branch.eviction_rank)}};
}

Json branches_json(const std::vector<kv::BranchDetails>& branches, const ServedModel& model,
                   ReadableText readable) {
  Json list = Json::array();
  for (const kv::BranchDetails& branch : branches) {
    list.push_back(branch_json(branch, model, readable));
  }
  return list;
}

HttpReply view_reply(const std::optional<kv::BranchView>& view, const ServedModel& model,
                     ReadableText readable) {
  if (!view) {
    return error_reply(ApiError(404, "node: is not in the tree any more", "node", "not_found"));
  }
  const std::optional<kv::BranchDetails>& branch = view->branch;
  return json_reply({{"above", branches_json(view->above, model, readable)},
                     {"branch", branch ? branch_json(*branch, model, readable) : Json(nullptr)},
                     {"above_all", view->above_all},
                     {"below", branches_json(view->below, model, readable)},
                     {"below_all", view->below_all},
                     {"nodes", view->nodes},
                     {"nodes_seen", view->nodes_seen}});
}

}  // namespace

std::unique_ptr<DeferredReply> show_branch(const ServedModel& model, CacheLooks& looks,
                                           const std::optional<std::string>& node,
                                           ReadableText readable) {
  auto look = [&model, asked = read_node(node), readable](kv::Cache& cache) -> DeferredReply::Make {
    const std::vector<kv::NodeId> leaving = cache.eviction_candidates(kLeavingMax);
    auto view =
        kv::view_branch(cache, asked, leaving, {.private_tokens = readable == ReadableText::kAll});
    return [&model, view = std::move(view), readable] { return view_reply(view, model, readable); };
  };
  return std::make_unique<DeferredReply>(
      [&model, &looks, look = std::move(look)](DeferredReply::Give give) {
        looks.ask(model.engine, look, std::move(give));
      });
}

}  // namespace pagoda::server

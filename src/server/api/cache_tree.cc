#include <chrono>
#include <future>
#include <memory>

#include "kv/picture.h"
#include "server/api/endpoints.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kNodesMax = 10'000;
constexpr std::chrono::seconds kPatience{10};  // a step ends before

// Tokens of a private node are its tenant's.
Json node_json(const kv::NodePicture& node) {
  Json json = {{"depth", node.depth},          {"name", node.name},         {"whole", node.whole},
               {"public", node.is_public},     {"children", node.children}, {"pages", node.pages},
               {"references", node.references}};
  if (node.is_public) json["tokens"] = node.tokens;
  return json;
}

}  // namespace

// Waits for the engine between two steps, on a thread that connections share: for people and tests.
Json show_tree(const ServedModel& model) {
  if (!model.shows_tree) {
    throw ApiError(404, "/cache/tree: answers with --kv-events-config alone, which tells as much",
                   {}, "not_found");
  }
  const auto drawn = std::make_shared<std::promise<kv::CachePicture>>();
  std::future<kv::CachePicture> picture = drawn->get_future();
  model.engine.post([drawn](auto& cache) { drawn->set_value(cache.picture(kNodesMax)); });
  if (picture.wait_for(kPatience) != std::future_status::ready) {
    throw ApiError(503, "the engine is busy", {}, "busy");
  }
  const kv::CachePicture cache = picture.get();
  Json tree = Json::array();
  for (const kv::NodePicture& node : cache.tree) tree.push_back(node_json(node));
  return {{"blocks",
           {{"all", cache.blocks.all},
            {"free", cache.blocks.free},
            {"filling", cache.blocks.filling},
            {"sealed", cache.blocks.sealed},
            {"idle", cache.blocks.idle}}},
          {"nodes", cache.nodes},
          {"tree", std::move(tree)}};
}

}  // namespace pagoda::server

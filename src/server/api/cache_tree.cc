#include <memory>

#include "kv/picture.h"
#include "server/api/endpoints.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kNodesMax = 10'000;

// Tokens of a private node are its tenant's.
Json node_json(const kv::NodePicture& node) {
  Json json = {{"depth", node.depth},          {"name", node.name},         {"whole", node.whole},
               {"public", node.is_public},     {"children", node.children}, {"pages", node.pages},
               {"references", node.references}};
  if (node.is_public) json["tokens"] = node.tokens;
  return json;
}

Json tree_json(const kv::CachePicture& cache) {
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

}  // namespace

std::unique_ptr<DeferredReply> show_tree(const ServedModel& model) {
  if (!model.shows_tree) {
    throw ApiError(404, "/cache/tree: answers with --kv-events-config alone, which tells as much",
                   {}, "not_found");
  }
  return std::make_unique<DeferredReply>([&served = model.engine](const DeferredReply::Give& give) {
    served.post([give](auto& cache) {
      const auto drawn = std::make_shared<const kv::CachePicture>(cache.picture(kNodesMax));
      give([drawn] { return json_reply(tree_json(*drawn)); });
    });
  });
}

}  // namespace pagoda::server

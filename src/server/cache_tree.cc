#include "server/cache_tree.h"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "kv/cache_snapshot.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kNodesMax = 10'000;
// The line that drawings stand in; no client has this name.
constexpr const char* kWorkLine = "the tree";

using Give = DeferredReply::Give;
using Make = DeferredReply::Make;

// Tokens of a private node are its tenant's.
Json node_json(const kv::NodeSnapshot& node) {
  Json json = {{"depth", node.depth},          {"name", node.name},         {"whole", node.whole},
               {"public", node.is_public},     {"children", node.children}, {"pages", node.pages},
               {"references", node.references}};
  if (node.is_public) json["tokens"] = node.tokens;
  return json;
}

Json tree_json(const kv::CacheSnapshot& cache) {
  Json tree = Json::array();
  for (const kv::NodeSnapshot& node : cache.tree) tree.push_back(node_json(node));
  return {{"blocks",
           {{"all", cache.blocks.all},
            {"free", cache.blocks.free},
            {"filling", cache.blocks.filling},
            {"sealed", cache.blocks.sealed},
            {"idle", cache.blocks.idle}}},
          {"nodes", cache.nodes},
          {"tree", std::move(tree)}};
}

HttpReply no_memory() {
  return error_reply(ApiError(503, "there is no memory to draw the tree", {}, "out_of_memory"));
}

Make written(const kv::CacheSnapshot& picture) {
  const auto body = std::make_shared<const std::string>(dump_json(tree_json(picture)));
  return [body] { return HttpReply{.body = *body}; };
}

// Everyone is given something: a function without a state, which takes no memory, at worst.
void give_all(const std::vector<Give>& askers, const Make& make) {
  for (const Give& give : askers) {
    try {
      give(make);
    } catch (...) {
      give(no_memory);
    }
  }
}

}  // namespace

struct TreeBoard::Shared : std::enable_shared_from_this<TreeBoard::Shared> {
  struct Drawing {
    std::optional<kv::CacheSnapshot> picture;
    std::vector<Give> askers;
  };

  void begin(engine::Engine& engine);  // under mutex
  void draw(engine::Engine& engine, const kv::Cache& cache);
  void write(engine::Engine& engine, Drawing& drawing);
  void go_on(engine::Engine& engine);

  std::mutex mutex;
  TextWorkers* workers = nullptr;  // under mutex; none once the board is gone
  std::vector<Give> waiting;       // for a drawing that has not begun; under mutex
  bool is_busy = false;            // one was asked for and is not given yet; under mutex
};

void TreeBoard::Shared::begin(engine::Engine& engine) {
  engine.post([self = shared_from_this(), &engine](auto& cache) { self->draw(engine, cache); });
  is_busy = true;  // behind what may throw; the engine's thread waits for the lock
}

void TreeBoard::Shared::draw(engine::Engine& engine, const kv::Cache& cache) {
  std::vector<Give> askers;
  {
    const std::lock_guard lock(mutex);
    askers.swap(waiting);
  }
  try {
    const auto drawing = std::make_shared<Drawing>();
    drawing->picture = kv::take_snapshot(cache, kNodesMax);
    drawing->askers = askers;
    const std::lock_guard lock(mutex);
    if (workers == nullptr) return;
    workers->run(kWorkLine,
                 [self = shared_from_this(), &engine, drawing] { self->write(engine, *drawing); });
    return;
  } catch (...) {
  }
  give_all(askers, no_memory);
  go_on(engine);
}

void TreeBoard::Shared::write(engine::Engine& engine, Drawing& drawing) {
  Make make = no_memory;
  try {
    make = written(*drawing.picture);
  } catch (...) {
  }
  drawing.picture.reset();
  give_all(drawing.askers, make);
  go_on(engine);
}

void TreeBoard::Shared::go_on(engine::Engine& engine) {
  std::vector<Give> askers;
  {
    const std::lock_guard lock(mutex);
    is_busy = false;
    if (waiting.empty()) return;
    try {
      return begin(engine);
    } catch (...) {
      askers.swap(waiting);
    }
  }
  give_all(askers, no_memory);
}

TreeBoard::TreeBoard(TextWorkers& workers) : shared_(std::make_shared<Shared>()) {
  shared_->workers = &workers;
}

TreeBoard::~TreeBoard() {
  const std::lock_guard lock(shared_->mutex);
  shared_->workers = nullptr;
}

void TreeBoard::ask(engine::Engine& engine, Give give) {
  const std::lock_guard lock(shared_->mutex);
  shared_->waiting.push_back(std::move(give));
  if (shared_->is_busy) return;
  try {
    shared_->begin(engine);
  } catch (...) {
    shared_->waiting.pop_back();
    throw;
  }
}

std::unique_ptr<DeferredReply> show_tree(const ServedModel& model, TreeBoard& board) {
  if (!model.shows_tree) {
    throw ApiError(404, "/cache/tree: needs --kv-events-config, which tells as much", {},
                   "not_found");
  }
  return std::make_unique<DeferredReply>(
      [&served = model.engine, &board](Give give) { board.ask(served, std::move(give)); });
}

}  // namespace pagoda::server

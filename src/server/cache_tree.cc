#include "server/cache_tree.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "kv/cache_snapshot.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kNodesMax = 10'000;
// Snapshots queue under this client name at TextWorkers; no real client has it.
constexpr const char* kWorkLine = "the tree";

using Give = DeferredReply::Give;
using Make = DeferredReply::Make;

// Tokens of a private node belong to its tenant and are left out.
Json node_json(const kv::NodeSnapshot& node) {
  Json json = {{"depth", node.depth},          {"name", node.hash},         {"whole", node.whole},
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
  return error_reply(ApiError(503, "there is no memory to list the tree", {}, "out_of_memory"));
}

Make written(const kv::CacheSnapshot& snapshot) {
  const auto body = std::make_shared<const std::string>(dump_json(tree_json(snapshot)));
  return [body] { return HttpReply{.body = *body}; };
}

// Every waiting request gets a reply: where memory runs out, a function without state, which needs
// none.
void give_all(const std::vector<Give>& waiting_now, const Make& make) {
  for (const Give& give : waiting_now) {
    try {
      give(make);
    } catch (...) {
      give(no_memory);
    }
  }
}

}  // namespace

struct CacheTreeReader::Shared : std::enable_shared_from_this<CacheTreeReader::Shared> {
  struct SnapshotJob {
    std::optional<kv::CacheSnapshot> snapshot;
    std::vector<Give> waiting_now;
  };

  void begin(engine::Engine& engine);  // with mutex held
  void take_snapshot(engine::Engine& engine, const kv::Cache& cache);
  void write(engine::Engine& engine, SnapshotJob& job);
  void begin_next(engine::Engine& engine);

  std::mutex mutex;
  TextWorkers* workers = nullptr;  // guarded by mutex; nullptr once the reader is destroyed
  std::vector<Give> waiting;       // requests for a snapshot that has not begun; guarded by mutex
  bool is_busy = false;  // a snapshot was requested and has not been given yet; guarded by mutex
};

void CacheTreeReader::Shared::begin(engine::Engine& engine) {
  engine.post(
      [self = shared_from_this(), &engine](auto& cache) { self->take_snapshot(engine, cache); });
  // After the calls that may throw, because the engine's thread waits for this lock.
  is_busy = true;
}

void CacheTreeReader::Shared::take_snapshot(engine::Engine& engine, const kv::Cache& cache) {
  std::vector<Give> waiting_now;
  {
    const std::lock_guard lock(mutex);
    waiting_now.swap(waiting);
  }
  try {
    const auto job = std::make_shared<SnapshotJob>();
    job->snapshot = kv::take_snapshot(cache, kNodesMax);
    job->waiting_now = waiting_now;
    const std::lock_guard lock(mutex);
    if (workers == nullptr) return;
    workers->run(kWorkLine,
                 [self = shared_from_this(), &engine, job] { self->write(engine, *job); });
    return;
  } catch (...) {
  }
  give_all(waiting_now, no_memory);
  begin_next(engine);
}

void CacheTreeReader::Shared::write(engine::Engine& engine, SnapshotJob& job) {
  Make make = no_memory;
  try {
    make = written(*job.snapshot);
  } catch (...) {
  }
  job.snapshot.reset();
  give_all(job.waiting_now, make);
  begin_next(engine);
}

void CacheTreeReader::Shared::begin_next(engine::Engine& engine) {
  std::vector<Give> waiting_now;
  {
    const std::lock_guard lock(mutex);
    is_busy = false;
    if (waiting.empty()) return;
    try {
      return begin(engine);
    } catch (...) {
      waiting_now.swap(waiting);
    }
  }
  give_all(waiting_now, no_memory);
}

CacheTreeReader::CacheTreeReader(TextWorkers& workers) : shared_(std::make_shared<Shared>()) {
  shared_->workers = &workers;
}

CacheTreeReader::~CacheTreeReader() {
  const std::lock_guard lock(shared_->mutex);
  shared_->workers = nullptr;
}

void CacheTreeReader::ask(engine::Engine& engine, Give give) {
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

std::unique_ptr<DeferredReply> show_tree(const ServedModel& model, CacheTreeReader& reader,
                                         const OptionName& option_name) {
  if (!model.shows_tree) {
    throw ApiError(404, fmt::format("/cache/tree: needs {}", option_name("kv_events_config", {})),
                   {}, "not_found");
  }
  return std::make_unique<DeferredReply>(
      [&served = model.engine, &reader](Give give) { reader.ask(served, std::move(give)); });
}

}  // namespace pagoda::server

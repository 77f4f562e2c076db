// GET /cache/map: the pool's blocks and the tree's largest branches, for people.
//
// read() returns the last snapshot of the map and asks the engine's thread for the next one. That
// thread takes it between two steps, at bounded cost (kv/cache_snapshot.h) and at most every
// kRefreshNs: no caller waits for a snapshot, and none is taken when nobody reads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "kv/cache_snapshot.h"
#include "server/access/rights.h"
#include "server/json.h"
#include "server/served_model.h"

namespace pagoda::server {

class CacheMapReader {
 public:
  static constexpr std::int64_t kRefreshNs = 250'000'000;

  struct Snapshot {
    kv::CacheMap map;
    std::int64_t at_ns = 0;  // the engine's clock
  };

  // With `draws_private`, maps have tokens of private branches, too: not every reader may see them.
  explicit CacheMapReader(bool draws_private) { shared_->draws_private = draws_private; }

  // Returns the last map, or nullptr before there is one. Any thread may call this.
  std::shared_ptr<const Snapshot> read(engine::Engine& engine);

 private:
  struct Shared {
    std::mutex mutex;
    std::shared_ptr<const Snapshot> snapshot;  // guarded by mutex
    bool asked = false;                        // guarded by mutex
    bool draws_private = false;                // from the start on
  };
  // The state is shared because the engine may take a snapshot after this reader is destroyed.
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// `readable` says of which branches there is text; `text` is null of the others.
Json describe_map(const ServedModel& model, CacheMapReader& reader, ReadableText readable);

}  // namespace pagoda::server

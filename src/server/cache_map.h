// GET /cache/map: the pool's blocks and the tree's largest branches, for people.
//
// A reader gets the map that was drawn last and asks the engine's thread for the next one, which it
// draws between two steps, at bounded cost (kv/cache_snapshot.h), and at most every kRefreshNs:
// nobody waits for it, and it costs nothing when nobody looks.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "kv/cache_snapshot.h"
#include "server/json.h"
#include "server/served_model.h"

namespace pagoda::server {

class CacheMapReader {
 public:
  static constexpr std::int64_t kRefreshNs = 250'000'000;

  struct Snapshot {
    kv::CacheMap map;
    std::int64_t at_ns = 0;  // by the engine's clock
  };

  // The last map, if there is one. Any thread.
  std::shared_ptr<const Snapshot> read(engine::Engine& engine);

 private:
  struct Shared {
    std::mutex mutex;
    std::shared_ptr<const Snapshot> snapshot;  // under mutex
    bool asked = false;                        // under mutex
  };
  // The engine may draw after the reader is gone.
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

Json describe_map(const ServedModel& model, CacheMapReader& reader);

}  // namespace pagoda::server

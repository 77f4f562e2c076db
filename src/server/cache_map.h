// GET /cache/map: the pool's blocks and the tree's largest branches, for people.
//
// A reader gets the map that was drawn last and asks the engine's thread for the next one, which it
// draws between two steps, at bounded cost (kv/picture.h), and at most every kRedrawNs: nobody
// waits for it, and it costs nothing when nobody looks.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "kv/picture.h"
#include "server/json.h"
#include "server/served_model.h"

namespace pagoda::server {

class MapBoard {
 public:
  static constexpr std::int64_t kRedrawNs = 250'000'000;

  struct Drawn {
    kv::CacheMap map;
    std::int64_t at_ns = 0;  // by the engine's clock
  };

  // The last map, if there is one. Any thread.
  std::shared_ptr<const Drawn> read(engine::Engine& engine);

 private:
  struct Shared {
    std::mutex mutex;
    std::shared_ptr<const Drawn> drawn;  // under mutex
    bool asked = false;                  // under mutex
  };
  // The engine may draw after the board is gone.
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

Json describe_map(const ServedModel& model, MapBoard& board);

}  // namespace pagoda::server

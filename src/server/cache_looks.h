// Looks at the cache for people: costly ones, which wait for each other.
//
// The engine's thread takes one look between two steps, so that however many people ask, requests
// go on. Looks are taken in the order in which they were asked for.
#pragma once

#include <functional>
#include <memory>

#include "engine/engine.h"
#include "server/deferred_reply.h"

namespace pagoda::server {

class CacheLooks {
 public:
  // Runs on the engine's thread; std::bad_alloc becomes a reply of 503.
  using Look = std::function<DeferredReply::Make(kv::Cache&)>;

  CacheLooks();
  // Any thread may call this. `give` is never called when the engine is destroyed first.
  void ask(engine::Engine& engine, Look look, DeferredReply::Give give);

 private:
  struct Shared;
  // The state is shared because the engine may take a look after this is destroyed.
  std::shared_ptr<Shared> shared_;
};

}  // namespace pagoda::server

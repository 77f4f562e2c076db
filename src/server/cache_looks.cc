#include "server/cache_looks.h"

#include <deque>
#include <mutex>
#include <new>
#include <utility>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

HttpReply no_memory_to_look() {
  return error_reply(ApiError(503, "there is no memory to look at the cache", {}, "out_of_memory"));
}

}  // namespace

struct CacheLooks::Shared : std::enable_shared_from_this<CacheLooks::Shared> {
  struct Asked {
    Look look;
    DeferredReply::Give give;
  };

  void begin(engine::Engine& engine);  // with mutex held
  void take_one(engine::Engine& engine, kv::Cache& cache);
  void begin_next(engine::Engine& engine);

  std::mutex mutex;
  std::deque<Asked> waiting;  // guarded by mutex
  bool is_busy = false;       // a look was posted and has not been taken yet; guarded by mutex
};

void CacheLooks::Shared::begin(engine::Engine& engine) {
  engine.post(
      [self = shared_from_this(), &engine](kv::Cache& cache) { self->take_one(engine, cache); });
  is_busy = true;
}

void CacheLooks::Shared::take_one(engine::Engine& engine, kv::Cache& cache) {
  Asked asked;
  {
    const std::lock_guard lock(mutex);
    asked = std::move(waiting.front());
    waiting.pop_front();
  }
  DeferredReply::Make reply = no_memory_to_look;
  try {
    reply = asked.look(cache);
  } catch (const std::bad_alloc&) {
  }
  asked.give(std::move(reply));
  begin_next(engine);
}

// Where memory runs out those who wait are told: nobody would look for them.
void CacheLooks::Shared::begin_next(engine::Engine& engine) {
  std::deque<Asked> given_up;
  {
    const std::lock_guard lock(mutex);
    is_busy = false;
    if (waiting.empty()) return;
    try {
      return begin(engine);
    } catch (const std::bad_alloc&) {
      given_up.swap(waiting);
    }
  }
  for (Asked& asked : given_up) asked.give(no_memory_to_look);
}

CacheLooks::CacheLooks() : shared_(std::make_shared<Shared>()) {}

void CacheLooks::ask(engine::Engine& engine, Look look, DeferredReply::Give give) {
  const std::lock_guard lock(shared_->mutex);
  shared_->waiting.push_back({std::move(look), std::move(give)});
  if (shared_->is_busy) return;
  try {
    shared_->begin(engine);
  } catch (...) {
    shared_->waiting.pop_back();
    throw;
  }
}

}  // namespace pagoda::server

// A reply that another thread provides when it is ready. The connection waits for it without
// occupying a thread, and builds the reply from the function that it was given.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "server/http_reply.h"

namespace pagoda::server {

class DeferredReply {
 public:
  // Builds the reply on the connection's thread, so that the provider, mostly the engine's thread,
  // writes no JSON. It must be quick and may throw.
  using Make = std::function<HttpReply()>;
  using Give = std::function<void(Make)>;

  // `begin` starts the work that the reply depends on. The function that it receives may be called
  // once, by any thread, also when nobody waits any more.
  explicit DeferredReply(std::function<void(Give)> begin) : begin_(std::move(begin)) {}

  // `wake` is called once take() has the reply. It must not throw.
  void start(std::function<void()> wake) {
    begin_([state = state_, wake = std::move(wake)](Make make) {
      {
        const std::lock_guard lock(state->mutex);
        state->make = std::move(make);
      }
      wake();
    });
  }
  // Returns an empty function until the reply is ready.
  Make take() {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->make, nullptr);
  }

 private:
  struct State {
    std::mutex mutex;
    Make make;
  };

  std::function<void(Give)> begin_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace pagoda::server

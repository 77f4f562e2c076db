// A reply that somebody else gives, when it is ready: its connection waits for it without keeping a
// thread, and makes it of what it was given.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "server/http_reply.h"

namespace pagoda::server {

class DeferredReply {
 public:
  // What is given is called where the connection runs: whoever gives, mostly the engine's thread,
  // writes no JSON. It must not take long, and may throw.
  using Make = std::function<HttpReply()>;
  using Give = std::function<void(Make)>;

  // `begin` starts what the reply depends on; what it is given may be called once, by any thread,
  // also when nobody waits any more.
  explicit DeferredReply(std::function<void(Give)> begin) : begin_(std::move(begin)) {}

  // `wake` is called when take() has the reply. It must not throw.
  void start(std::function<void()> wake) {
    begin_([state = state_, wake = std::move(wake)](Make make) {
      {
        const std::lock_guard lock(state->mutex);
        state->make = std::move(make);
      }
      wake();
    });
  }
  // Empty until then.
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

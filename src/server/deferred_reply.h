// A reply that somebody else gives, when it is ready: its connection waits for it without keeping a
// thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/http_reply.h"

namespace pagoda::server {

class DeferredReply {
 public:
  using Give = std::function<void(HttpReply)>;

  // `begin` starts what the reply depends on; what it is given may be called once, by any thread,
  // also when nobody waits any more.
  explicit DeferredReply(std::function<void(Give)> begin) : begin_(std::move(begin)) {}

  // `wake` is called when take() has the reply.
  void start(std::function<void()> wake) {
    begin_([state = state_, wake = std::move(wake)](HttpReply reply) {
      {
        const std::lock_guard lock(state->mutex);
        state->reply = std::move(reply);
      }
      wake();
    });
  }
  std::optional<HttpReply> take() {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->reply, std::nullopt);
  }

 private:
  struct State {
    std::mutex mutex;
    std::optional<HttpReply> reply;
  };

  std::function<void(Give)> begin_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace pagoda::server

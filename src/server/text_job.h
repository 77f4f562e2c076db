// A piece of work for TextWorkers that its owner waits for and that may use the owner's objects:
// when the job is destroyed, work that has not begun never begins, and work that runs is waited
// for.
//
//   kWaiting -> kRunning -> kEnded
//        `----> kWithdrawn
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "server/text_workers.h"

namespace pagoda::server {

class TextJob {
 public:
  // Neither `work` nor `on_end` may throw. `on_end` is called on the worker's thread when the work
  // has ended, perhaps after the job was destroyed.
  TextJob(TextWorkers& workers, const std::string& client, std::function<void()> work,
          std::function<void()> on_end) {
    workers.run(client, [state = state_, work = std::move(work), on_end = std::move(on_end)] {
      if (!state->advance(Phase::kWaiting, Phase::kRunning)) return;
      work();
      state->advance(Phase::kRunning, Phase::kEnded);
      on_end();
    });
  }
  ~TextJob() {
    if (!withdraw()) state_->wait();
  }
  TextJob(const TextJob&) = delete;
  TextJob& operator=(const TextJob&) = delete;

  bool has_ended() const { return state_->is(Phase::kEnded); }
  // Returns true when the work will never begin.
  bool withdraw() {
    return state_->advance(Phase::kWaiting, Phase::kWithdrawn) || state_->is(Phase::kWithdrawn);
  }

 private:
  enum class Phase : std::uint8_t { kWaiting, kRunning, kEnded, kWithdrawn };

  class State {
   public:
    bool is(Phase phase) {
      const std::lock_guard lock(mutex_);
      return phase_ == phase;
    }
    bool advance(Phase from, Phase to) {
      {
        const std::lock_guard lock(mutex_);
        if (phase_ != from) return false;
        phase_ = to;
      }
      ended_.notify_all();
      return true;
    }
    void wait() {
      std::unique_lock lock(mutex_);
      ended_.wait(lock, [this] { return phase_ == Phase::kEnded; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable ended_;
    Phase phase_ = Phase::kWaiting;  // guarded by mutex_
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace pagoda::server

// The signals of a server in the foreground, as questions that its main thread waits for.
#pragma once

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>

namespace pagoda::serve {

// SIGHUP asks for files to be read again. Of the others the first asks to stop, the second insists.
class Signals {
 public:
  enum class Asked { kReload, kStop };

  void raise(int signal) {
    const std::lock_guard lock(mutex_);
    if (signal == SIGHUP) {
      reload_ = true;
    } else {
      // While the model loads there is nothing to finish.
      if (!serving_) std::_Exit(0);
      if (stop_) std::_Exit(kSignalled + signal);
      stop_ = true;
    }
    changed_.notify_all();
  }
  void start_serving() {
    const std::lock_guard lock(mutex_);
    serving_ = true;
  }
  Asked wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || reload_; });
    reload_ = false;
    return stop_ ? Asked::kStop : Asked::kReload;
  }

 private:
  static constexpr int kSignalled = 128;  // what shells add to the signal's number

  std::mutex mutex_;
  std::condition_variable changed_;
  bool serving_ = false;
  bool stop_ = false;
  bool reload_ = false;
};

}  // namespace pagoda::serve

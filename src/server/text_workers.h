// Threads for what takes a request long to read or to answer: connections go on meanwhile.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace pagoda::server {

class TextWorkers {
 public:
  explicit TextWorkers(std::uint32_t threads);
  ~TextWorkers() { finish(); }
  TextWorkers(const TextWorkers&) = delete;
  TextWorkers& operator=(const TextWorkers&) = delete;

  // Soon, in the order of asking, on one of the threads. It must not throw. Any thread.
  void run(std::function<void()> work);
  // Much memory was freed: the system gets it back within seconds. Any thread.
  void tidy_later();
  // Does what was asked for so far, and ends the threads: nothing more may be asked for.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;  // under mutex_
  std::optional<Clock::time_point> tidy_at_;   // under mutex_
  bool stopping_ = false;                      // under mutex_
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::server

// Threads for requests that take long to parse or to answer, so that connections are not held up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace pagoda::server {

class TextWorkers {
 public:
  explicit TextWorkers(std::uint32_t threads);
  ~TextWorkers() { finish(); }
  TextWorkers(const TextWorkers&) = delete;
  TextWorkers& operator=(const TextWorkers&) = delete;

  // Runs `work` soon on one of the threads. Clients take turns, and the work of one client begins
  // in the order of the calls. `work` must not throw. Any thread may call this.
  void run(const std::string& client, std::function<void()> work);
  // Call this when much memory was freed: it goes back to the system within seconds. Any thread may
  // call this.
  void trim_heap_later();
  // Finishes the work submitted so far and ends the threads; later submissions never run.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Line {
    std::string client;
    std::deque<std::function<void()>> waiting;  // never empty
  };

  void serve();
  std::function<void()> take_next();  // with mutex_ held; some work must wait

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Line> lines_;  // the client whose turn is next stands first; guarded by mutex_
  std::unordered_map<std::string, Line*> line_of_;  // by client; guarded by mutex_
  std::optional<Clock::time_point> trim_at_;        // guarded by mutex_
  bool stopping_ = false;                           // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::server

// Threads for what takes a request long to read or to answer: connections go on meanwhile.
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

  // Soon, on one of the threads: clients take turns, and what one client asks for begins in the
  // order of asking. It must not throw. Any thread.
  void run(const std::string& client, std::function<void()> work);
  // Much memory was freed: the system gets it back within seconds. Any thread.
  void trim_heap_later();
  // Does what was asked for so far, and ends the threads: what is asked for later is never done.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Line {
    std::string client;
    std::deque<std::function<void()>> waiting;  // never empty
  };

  void serve();
  std::function<void()> take_next();  // under mutex_; there is one

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Line> lines_;                           // whose turn is next stands first; under mutex_
  std::unordered_map<std::string, Line*> line_of_;  // [client], under mutex_
  std::optional<Clock::time_point> trim_at_;        // under mutex_
  bool stopping_ = false;                           // under mutex_
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::server

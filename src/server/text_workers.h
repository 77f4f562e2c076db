// Threads for requests that take long to parse or to answer, so that connections are not held up.
//
// Work is not interrupted once it has begun, so one client never has all threads: its second piece
// of work does not begin on the last free one. Of two threads a client that is alone has one.
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
  // in the order of the calls, on all threads but one at most. `work` must not throw. Any thread
  // may call this.
  void run(const std::string& client, std::function<void()> work);
  // Call this when much memory was freed: it goes back to the system within seconds. Any thread may
  // call this.
  void trim_heap_later();
  // Waits until no work waits or runs, for as long at most. Returns false when some still does.
  bool wait_idle(std::chrono::nanoseconds timeout);
  // Finishes the work submitted so far and ends the threads; later submissions never run.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  // A client with work that waits or runs.
  struct Client {
    std::deque<std::function<void()>> waiting;
    std::uint32_t running = 0;
  };
  using Clients = std::unordered_map<std::string, Client>;
  using Line = std::list<Clients::value_type*>;  // never nullptr

  void serve();
  // With mutex_ held: returns the place in line_ of the client whose work may begin next, or its
  // end. Whoever must wait has work that runs, so that no more places are looked at than there are
  // threads.
  Line::iterator find_next();

  const std::uint32_t threads_max_;
  std::mutex mutex_;
  std::condition_variable changed_;  // notifies threads
  std::condition_variable idle_;     // notifies wait_idle()
  Clients clients_;                  // guarded by mutex_
  Line line_;  // clients with work that waits, whose turn is next first; guarded by mutex_
  std::uint32_t threads_busy_ = 0;            // guarded by mutex_
  std::optional<Clock::time_point> trim_at_;  // guarded by mutex_
  bool stopping_ = false;                     // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::server

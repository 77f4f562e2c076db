#include "server/text_workers.h"

#include <sys/resource.h>

#include <utility>

#include "base/heap.h"

namespace pagoda::server {
namespace {

// A burst of requests has usually ended by then, so that the heap is trimmed once and not per
// request.
constexpr std::chrono::milliseconds kTrimDelay{1'000};
// On few cores, connections and the engine take precedence.
constexpr int kNice = 5;

}  // namespace

TextWorkers::TextWorkers(std::uint32_t threads) : threads_max_(threads) {
  for (std::uint32_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { serve(); });
    pthread_setname_np(threads_.back().native_handle(), "text");  // the name that top and perf show
  }
}

void TextWorkers::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void TextWorkers::run(const std::string& client, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    Line place(1);
    const auto [found, is_new] = clients_.try_emplace(client);
    try {
      found->second.waiting.push_back(std::move(work));
    } catch (...) {
      if (is_new) clients_.erase(found);
      throw;
    }
    place.front() = &*found;
    if (found->second.waiting.size() == 1) line_.splice(line_.end(), place);
  }
  changed_.notify_one();
}

TextWorkers::Line::iterator TextWorkers::find_next() {
  const bool is_last_free = threads_busy_ + 1 == threads_max_;
  auto place = line_.begin();
  while (place != line_.end() && is_last_free && (*place)->second.running > 0) ++place;
  return place;
}

bool TextWorkers::wait_idle(std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [this] { return clients_.empty(); });
}

void TextWorkers::trim_heap_later() {
  {
    const std::lock_guard lock(mutex_);
    if (trim_at_) return;
    trim_at_ = Clock::now() + kTrimDelay;
  }
  changed_.notify_one();
}

void TextWorkers::serve() {
  setpriority(PRIO_PROCESS, 0, kNice);  // changes this thread alone, on Linux
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto next = find_next(); next != line_.end()) {
      Client& client = (*next)->second;
      const std::string& name = (*next)->first;
      std::function<void()> work = std::move(client.waiting.front());
      client.waiting.pop_front();
      if (client.waiting.empty()) {
        line_.erase(next);
      } else {
        line_.splice(line_.end(), line_, next);
      }
      ++client.running;
      ++threads_busy_;
      lock.unlock();
      work();
      work = nullptr;  // destroys the work's captures while the lock is free
      lock.lock();
      --threads_busy_;
      if (--client.running == 0 && client.waiting.empty()) clients_.erase(clients_.find(name));
      if (clients_.empty()) idle_.notify_all();
      // Work of this client may have waited beside a free thread.
      if (!line_.empty() || stopping_) changed_.notify_all();
    } else if (stopping_ && line_.empty()) {
      return;
    } else if (trim_at_ && *trim_at_ <= Clock::now()) {
      trim_at_.reset();
      lock.unlock();
      trim_heap();
      lock.lock();
    } else if (trim_at_) {
      changed_.wait_until(lock, *trim_at_);
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace pagoda::server

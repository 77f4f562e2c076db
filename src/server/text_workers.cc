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

TextWorkers::TextWorkers(std::uint32_t threads) {
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
    const auto found = line_of_.find(client);
    if (found != line_of_.end()) {
      found->second->waiting.push_back(std::move(work));
    } else {
      std::list<Line> line;  // spliced into lines_ once it is complete
      line.emplace_back(Line{client, {}}).waiting.push_back(std::move(work));
      line_of_.emplace(client, &line.front());
      lines_.splice(lines_.end(), line);
    }
  }
  changed_.notify_one();
}

std::function<void()> TextWorkers::take_next() {
  Line& line = lines_.front();
  std::function<void()> work = std::move(line.waiting.front());
  line.waiting.pop_front();
  if (line.waiting.empty()) {
    line_of_.erase(line.client);
    lines_.pop_front();
  } else {
    lines_.splice(lines_.end(), lines_, lines_.begin());
  }
  return work;
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
    if (!lines_.empty()) {
      std::function<void()> work = take_next();
      lock.unlock();
      work();
      work = nullptr;  // destroys the work's captures while the lock is free
      lock.lock();
    } else if (stopping_) {
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

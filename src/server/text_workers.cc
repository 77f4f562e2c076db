#include "server/text_workers.h"

#include <sys/resource.h>

#include <utility>

#include "base/heap.h"

namespace pagoda::server {
namespace {

// A burst has mostly ended by then; what it freed is given back once, not once a request.
constexpr std::chrono::milliseconds kTrimDelay{1'000};
// Where cores are few, connections and the engine go first.
constexpr int kNice = 5;

}  // namespace

TextWorkers::TextWorkers(std::uint32_t threads) {
  for (std::uint32_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { serve(); });
    pthread_setname_np(threads_.back().native_handle(), "text");  // for top and perf
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
      std::list<Line> line;  // joins the others when all of it stands
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
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread alone, on Linux
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!lines_.empty()) {
      std::function<void()> work = take_next();
      lock.unlock();
      work();
      work = nullptr;  // what it held goes while nobody waits for the lock
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

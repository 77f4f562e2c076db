// Threads with a fixed split of the work.
//
// run(items, task) cuts [0, items) into one contiguous range per thread, a function of the two
// counts alone, and returns when all are done; the caller works on the first range. Workers spin
// briefly between jobs, then sleep: an idle pool costs no CPU. No allocation per job.
//
// Thread rule: one thread calls run() at a time; tasks must not call run() on the same pool.
// The number of threads never changes a result: tasks write disjoint outputs and each output is
// computed whole by one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace pagoda {

struct WorkRange {
  std::size_t begin;
  std::size_t end;
  std::size_t thread;  // 0 is the caller
};

// The part of [0, items) that `thread` of `threads` gets: sizes differ by at most one.
constexpr WorkRange split_work(std::size_t items, std::size_t thread, std::size_t threads) {
  const std::size_t share = items / threads;
  const std::size_t extra = items % threads;
  const std::size_t begin = thread * share + (thread < extra ? thread : extra);
  return {begin, begin + share + (thread < extra ? 1 : 0), thread};
}

class ThreadPool {
 public:
  explicit ThreadPool(std::size_t threads);  // at least 1; 1 means the caller alone
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t threads() const { return workers_.size() + 1; }

  // task(WorkRange) on every thread whose range is not empty.
  template <class Task>
  void run(std::size_t items, Task&& task) {
    using Plain = std::remove_reference_t<Task>;
    run_erased(
        items, [](void* context, WorkRange range) { (*static_cast<Plain*>(context))(range); },
        const_cast<void*>(static_cast<const void*>(std::addressof(task))));
  }

 private:
  using ErasedTask = void (*)(void*, WorkRange);

  void run_erased(std::size_t items, ErasedTask task, void* context);
  void work(std::size_t thread);

  std::vector<std::thread> workers_;
  // The job, published by the increment of generation_.
  ErasedTask task_ = nullptr;
  void* context_ = nullptr;
  std::size_t items_ = 0;
  bool stopping_ = false;
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};
};

// Cores this process may use (affinity and cgroup quota respected), at least 1.
std::size_t usable_cores();

}  // namespace pagoda

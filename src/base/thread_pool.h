// Threads with a fixed split of the work.
//
// run(items, task) cuts [0, items) into one contiguous range per thread, a function of the two
// counts alone, and returns when all are done. The caller works on the first range, then on every
// range whose worker has not begun: where other programs keep a worker off its core, a job takes as
// long as on one thread, not as long as the worker waits. Workers spin briefly between jobs, then
// sleep: an idle pool costs no CPU. No allocation per job.
//
// Thread rule: one thread calls run() at a time; tasks must not call run() on the same pool.
// Who does a range never changes a result: tasks write disjoint outputs and each output is computed
// whole by one thread.
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
  // Who does it: 0 is the caller. No two ranges are done at once under one number, so that it can
  // choose scratch memory.
  std::size_t thread;
};

// Range `part` of `parts` of [0, items): sizes differ by at most one.
constexpr WorkRange split_work(std::size_t items, std::size_t part, std::size_t parts) {
  const std::size_t share = items / parts;
  const std::size_t extra = items % parts;
  const std::size_t begin = part * share + (part < extra ? part : extra);
  return {begin, begin + share + (part < extra ? 1 : 0), part};
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

  // A worker's range, taken by whoever first sets `taken` to the job's number.
  struct alignas(64) Claim {
    std::atomic<std::uint32_t> taken{0};
  };

  void run_erased(std::size_t items, ErasedTask task, void* context);
  void work(std::size_t thread);
  bool claim(std::size_t part, std::uint32_t job);
  void do_part(std::size_t part, std::size_t thread);

  std::vector<std::thread> workers_;
  std::vector<Claim> claims_;  // [threads]; the caller's own is not used
  // The job, published by the increment of job_ and unchanged until all its ranges are done.
  ErasedTask task_ = nullptr;
  void* context_ = nullptr;
  std::size_t items_ = 0;
  std::atomic<bool> stopping_ = false;
  alignas(64) std::atomic<std::uint32_t> job_{0};
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};
};

// Cores this process may use (affinity and cgroup quota respected), at least 1.
std::size_t usable_cores();

}  // namespace pagoda

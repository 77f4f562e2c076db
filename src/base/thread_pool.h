// Threads that share out the items of a job.
//
// run(items, task) cuts [0, items) into one contiguous range per thread and each range into a few
// pieces, a function of the two counts alone, and returns when all are done. A thread does the
// pieces of its own range in order, then those that others have not begun: where a core is slow, or
// other programs keep a worker off it, the rest of its range goes to whoever is free. Workers spin
// briefly between jobs, then sleep: an idle pool costs no CPU. No allocation per job.
//
// Thread rule: one thread calls run() at a time; tasks must not call run() on the same pool.
// Who does a piece never changes a result: tasks write disjoint outputs and each output is computed
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
  // Who does it: 0 is the caller. Nothing is done at once under one number, so that it can choose
  // scratch memory.
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

  // task(WorkRange) for every piece.
  template <class Task>
  void run(std::size_t items, Task&& task) {
    using Plain = std::remove_reference_t<Task>;
    run_erased(
        items, [](void* context, WorkRange range) { (*static_cast<Plain*>(context))(range); },
        const_cast<void*>(static_cast<const void*>(std::addressof(task))));
  }

 private:
  using ErasedTask = void (*)(void*, WorkRange);

  // What is left of a range: the job's number (upper half) and how many pieces nobody has taken.
  // Who wakes late finds another job's number and takes nothing.
  struct alignas(64) Claim {
    std::atomic<std::uint64_t> left{0};
  };

  void run_erased(std::size_t items, ErasedTask task, void* context);
  void work(std::size_t thread);
  // Does pieces until none is left; how many it did.
  std::uint32_t do_pieces(std::size_t thread, std::uint32_t job);
  std::uint32_t take(std::size_t part, std::uint32_t job);

  std::vector<std::thread> workers_;
  std::vector<Claim> claims_;  // [threads]
  // The job, published by the increment of job_ and unchanged until all its pieces are done.
  ErasedTask task_ = nullptr;
  void* context_ = nullptr;
  std::size_t items_ = 0;
  std::atomic<bool> stopping_ = false;
  alignas(64) std::atomic<std::uint32_t> job_{0};
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};  // pieces
};

// Cores this process may use (affinity and cgroup quota respected), at least 1.
std::size_t usable_cores();

}  // namespace pagoda

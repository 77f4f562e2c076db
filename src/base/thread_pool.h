// ThreadPool shares out the items of a job among threads.
//
// run(items, task) cuts [0, items) into one contiguous range per thread and each range into a few
// pieces, a function of the two counts alone, and returns when all are done. A thread computes the
// pieces of its own range in order, then those that others have not begun: where a core is slow, or
// other programs keep a worker off it, the rest of the worker's range goes to whichever thread is
// free. Workers spin briefly between jobs, then sleep: an idle pool costs no CPU. A job allocates
// nothing.
//
// Thread rule: one thread calls run() at a time; tasks must not call run() on the same pool. The
// thread that computes a piece never changes a result: tasks write disjoint outputs, and one thread
// computes each output whole.
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
  // The number of the thread that computes the range; 0 is the caller. No two ranges run at once
  // under one number, so that the number can choose scratch memory.
  std::size_t thread;
};

// Returns range `part` of `parts` of [0, items): sizes differ by at most one.
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

  // Calls task(WorkRange) for every piece.
  template <class Task>
  void run(std::size_t items, Task&& task) {
    using Plain = std::remove_reference_t<Task>;
    run_erased(
        items, [](void* context, WorkRange range) { (*static_cast<Plain*>(context))(range); },
        const_cast<void*>(static_cast<const void*>(std::addressof(task))));
  }

 private:
  using ErasedTask = void (*)(void*, WorkRange);

  // A Claim holds a job's number (upper half) and how many pieces of the range no thread has taken.
  // A worker that wakes late finds another job's number and takes nothing.
  struct alignas(64) Claim {
    std::atomic<std::uint64_t> left{0};
  };

  void run_erased(std::size_t items, ErasedTask task, void* context);
  void work(std::size_t thread);
  // Computes pieces until none is left; returns how many this thread computed.
  std::uint32_t do_pieces(std::size_t thread, std::uint32_t job);
  std::uint32_t take(std::size_t part, std::uint32_t job);

  std::vector<std::thread> workers_;
  std::vector<Claim> claims_;  // [threads]
  // The job is published by the increment of job_ and unchanged until all its pieces are done.
  ErasedTask task_ = nullptr;
  void* context_ = nullptr;
  std::size_t items_ = 0;
  std::atomic<bool> stopping_ = false;
  alignas(64) std::atomic<std::uint32_t> job_{0};
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};  // pieces of the job that are not done
};

// Returns the cores this process may use (affinity and cgroup quota respected), at least 1.
std::size_t usable_cores();

}  // namespace pagoda

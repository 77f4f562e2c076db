#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>

#include "base/assert.h"
#include "base/control_group.h"

namespace pagoda {
namespace {

// Spinning takes 20 to 50 us: longer than the gap between two stages of a step, shorter than anyone
// notices.
constexpr int kSpins = 4000;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // YIELD does nothing on cores without a second thread
#endif
}

// Waits until `value` differs from `old`: spins, then sleeps in the kernel.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    pause_briefly();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

// A range has few enough pieces that taking one costs nothing beside computing it.
constexpr std::size_t kPieces = 4;

std::uint32_t pieces_of(WorkRange range) {
  return static_cast<std::uint32_t>(std::min(kPieces, range.end - range.begin));
}

}  // namespace

ThreadPool::ThreadPool(std::size_t threads) : claims_(threads) {
  ASSERT(threads >= 1, "a pool needs at least the caller's thread");
  for (std::size_t thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_erased(std::size_t items, ErasedTask task, void* context) {
  if (items == 0) return;
  if (workers_.empty() || items == 1) {
    task(context, {0, items, 0});
    return;
  }
  task_ = task;
  context_ = context;
  items_ = items;
  const std::uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  std::uint32_t pieces = 0;
  for (std::size_t part = 0; part < claims_.size(); ++part) {
    const std::uint32_t own = pieces_of(split_work(items, part, claims_.size()));
    claims_[part].left.store(std::uint64_t{job} << 32 | own, std::memory_order_relaxed);
    pieces += own;
  }
  unfinished_.store(pieces, std::memory_order_relaxed);
  job_.store(job, std::memory_order_release);
  job_.notify_all();
  const std::uint32_t done = do_pieces(0, job);
  std::uint32_t left = unfinished_.fetch_sub(done, std::memory_order_acq_rel) - done;
  while (left != 0) left = wait_for_change(unfinished_, left);
}

void ThreadPool::work(std::size_t thread) {
  std::uint32_t job = 0;
  for (;;) {
    job = wait_for_change(job_, job);
    if (stopping_.load(std::memory_order_relaxed)) return;
    const std::uint32_t done = do_pieces(thread, job);
    if (done == 0) continue;
    if (unfinished_.fetch_sub(done, std::memory_order_acq_rel) == done) unfinished_.notify_one();
  }
}

std::uint32_t ThreadPool::do_pieces(std::size_t thread, std::uint32_t job) {
  std::uint32_t done = 0;
  for (std::size_t other = 0; other < claims_.size(); ++other) {
    const std::size_t part = (thread + other) % claims_.size();
    while (const std::uint32_t left = take(part, job)) {
      const WorkRange range = split_work(items_, part, claims_.size());
      const std::uint32_t pieces = pieces_of(range);
      const WorkRange piece = split_work(range.end - range.begin, pieces - left, pieces);
      task_(context_, {range.begin + piece.begin, range.begin + piece.end, thread});
      ++done;
    }
  }
  return done;
}

// Takes one piece of range `part`. Returns how many pieces were left, the caller's included; 0:
// none.
std::uint32_t ThreadPool::take(std::size_t part, std::uint32_t job) {
  std::atomic<std::uint64_t>& claim = claims_[part].left;
  std::uint64_t left = claim.load(std::memory_order_relaxed);
  while (left >> 32 == job && static_cast<std::uint32_t>(left) != 0) {
    if (claim.compare_exchange_weak(left, left - 1, std::memory_order_acquire)) {
      return static_cast<std::uint32_t>(left);
    }
  }
  return 0;
}

std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    cores = static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  }
  const auto all = static_cast<double>(cores);
  return static_cast<std::size_t>(std::clamp(cpu_quota().value_or(all), 1.0, all));
}

}  // namespace pagoda

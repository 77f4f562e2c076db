#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/assert.h"

namespace pagoda {
namespace {

// About 20 us: longer than the gap between two stages of a step, shorter than anyone notices.
constexpr int kSpins = 4000;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
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

// The cgroup v2 CPU quota in whole cores, or a large number when there is none.
std::size_t cores_by_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return SIZE_MAX;
  return static_cast<std::size_t>(std::max(1.0, std::stod(quota) / period));
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
  unfinished_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
  const std::uint32_t job = job_.fetch_add(1, std::memory_order_release) + 1;
  job_.notify_all();
  do_part(0, 0);
  for (std::size_t part = 1; part < claims_.size(); ++part) {
    if (!claim(part, job)) continue;
    do_part(part, 0);
    unfinished_.fetch_sub(1, std::memory_order_relaxed);
  }
  for (std::uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;) {
    left = wait_for_change(unfinished_, left);
  }
}

void ThreadPool::work(std::size_t thread) {
  std::uint32_t job = 0;
  for (;;) {
    job = wait_for_change(job_, job);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!claim(thread, job)) continue;
    do_part(thread, thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  }
}

// Every claim goes up by one a job, so that a worker that wakes late finds its range taken.
bool ThreadPool::claim(std::size_t part, std::uint32_t job) {
  std::uint32_t before = job - 1;
  return claims_[part].taken.compare_exchange_strong(before, job, std::memory_order_acq_rel);
}

void ThreadPool::do_part(std::size_t part, std::size_t thread) {
  const WorkRange range = split_work(items_, part, claims_.size());
  if (range.begin != range.end) task_(context_, {range.begin, range.end, thread});
}

std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    cores = static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  }
  return std::min(cores, cores_by_quota());
}

}  // namespace pagoda

#include "engine/backends/mask_thread.h"

namespace pagoda::engine {

MaskThread::MaskThread(std::size_t rows_max, bool has_thread) {
  rows_.reserve(rows_max);
  if (has_thread) thread_ = std::thread([this] { work(); });
}

MaskThread::~MaskThread() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_one();
  thread_.join();
}

void MaskThread::begin(std::span<const LaunchSample> samples) {
  rows_.clear();
  for (const LaunchSample& sample : samples) {
    if (sample.sampling->constraint()) rows_.push_back(sample.sampling);
  }
  if (rows_.empty()) return;
  const auto count = static_cast<std::uint32_t>(rows_.size());
  const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
  unfinished_.store(count, std::memory_order_relaxed);
  left_.store((std::uint64_t{round} << 32) | count, std::memory_order_release);
  round_.store(round, std::memory_order_release);
  if (thread_.joinable()) round_.notify_one();
}

void MaskThread::wait() {
  take_rows(round_.load(std::memory_order_relaxed));
  while (true) {
    const std::uint32_t unfinished = unfinished_.load(std::memory_order_acquire);
    if (unfinished == 0) return;
    unfinished_.wait(unfinished, std::memory_order_acquire);
  }
}

void MaskThread::work() {
  std::uint32_t seen = 0;
  while (true) {
    round_.wait(seen, std::memory_order_acquire);
    seen = round_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    take_rows(seen);
  }
}

void MaskThread::take_rows(std::uint32_t round) {
  std::uint64_t left = left_.load(std::memory_order_acquire);
  while (left >> 32 == round && (left & 0xFFFFFFFF) != 0) {
    if (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      continue;
    }
    static_cast<void>(rows_[(left & 0xFFFFFFFF) - 1]->prepare());
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    left = left_.load(std::memory_order_acquire);
  }
}

}  // namespace pagoda::engine

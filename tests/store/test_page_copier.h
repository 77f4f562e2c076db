// TestPageCopier is a copier that tests hold up, let fail and count.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "kv/tiers/page_copier.h"

namespace pagoda::store {

struct CopierControl {
  std::atomic<std::uint64_t> orders{0};
  std::atomic<std::uint64_t> pages{0};       // pages copied
  std::atomic<std::uint64_t> most{0};        // pages of one call of copy()
  std::atomic<std::uint64_t> unordered{0};   // pages copied without a call of order()
  std::atomic<std::uint64_t> fail_calls{0};  // so many calls of copy() fail from now on
  std::atomic<bool> refuse_order{false};
  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;  // true: copies wait

  void hold(bool on) {
    {
      const std::lock_guard lock(mutex);
      held = on;
    }
    changed.notify_all();
  }
};

class TestCopier final : public kv::PageCopier {
 public:
  explicit TestCopier(std::shared_ptr<CopierControl> control, std::size_t threads = 1)
      : control_(std::move(control)), inner_(kv::memory_copier(threads)) {}

  Result<kv::HostMemory> take_memory(std::uint64_t bytes) override {
    return inner_->take_memory(bytes);
  }
  Status order() override {
    if (control_->refuse_order) return Error{ErrorCode::kIo, "the device is lost"};
    ++control_->orders;
    return ok_status();
  }
  Status copy(std::span<const kv::PageCopy> moves) override {
    std::unique_lock lock(control_->mutex);
    control_->changed.wait(lock, [this] { return !control_->held; });
    control_->pages += moves.size();
    control_->most = std::max<std::uint64_t>(control_->most, moves.size());
    if (control_->pages > control_->orders) ++control_->unordered;
    if (control_->fail_calls > 0) {
      --control_->fail_calls;
      return Error{ErrorCode::kIo, "a copy failed"};
    }
    return inner_->copy(moves);
  }

 private:
  std::shared_ptr<CopierControl> control_;
  std::unique_ptr<kv::PageCopier> inner_;
};

}  // namespace pagoda::store

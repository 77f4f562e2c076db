// The maintenance of a DiskStore: reading its index at start, commits, removals, scrubs.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "store/disk/disk_store.h"
#include "store/disk/other_slabs.h"

namespace pagoda::store {

using kv::StoreFault;
using std::chrono::nanoseconds;

namespace {

constexpr std::int64_t kLongestSleepNs = 3'600'000'000'000;
constexpr std::int64_t kLoadWaitNs = 60'000'000'000;  // how long a removal waits for the index

}  // namespace

void DiskStore::maintain() {
  if (!load_index()) return;
  Lock lock(mutex_);
  scrub_due_ns_ = clock_.now_ns();
  while (!is_stopping_) {
    const std::int64_t now_ns = clock_.now_ns();
    queue_.expire(now_ns);
    const std::int64_t wake_ns = next_wake_ns();
    if (!needs_notify_ && wake_ns > now_ns) {
      is_maintenance_idle_ = queue_.in_flight() == 0;
      maintenance_due_.wait_for(lock, nanoseconds(std::min(wake_ns - now_ns, kLongestSleepNs)));
      is_maintenance_idle_ = false;
      continue;
    }
    unlock_and_notify(lock);
    commit_if_due(now_ns);
    scrub_if_due(now_ns);
    lock.lock();
  }
}

// False: the store stops.
bool DiskStore::load_index() {
  for (;;) {
    const int error = slab_->load([this] {
      Lock lock(mutex_);
      queue_.expire(clock_.now_ns());
      unlock_and_notify(lock);
    });
    Lock lock(mutex_);
    health_.note_load(error);
    if (error == 0) {
      if (slab_->has_changes()) note_changes();
      queue_.answer_lookups([&](const auto& keys) { return slab_->find(keys); });
      ended_.notify_all();
      needs_notify_ = true;  // callers learn that writes are taken from now on
      unlock_and_notify(lock);
      return true;
    }
    ++counted_.faults[static_cast<std::size_t>(StoreFault::kIo)];
    needs_notify_ = true;  // callers need not wait for the index any more
    unlock_and_notify(lock);
    lock.lock();
    maintenance_due_.wait_for(lock, nanoseconds(options_.retry_after_ns),
                              [this] { return is_stopping_; });
    if (is_stopping_) return false;
  }
}

std::int64_t DiskStore::next_wake_ns() const {
  std::int64_t wake_ns = queue_.next_timeout_ns();
  if (changed_since_ns_ != 0) {
    wake_ns = std::min(wake_ns, changed_since_ns_ + options_.commit_after_ns);
  }
  if (is_idle_ && options_.scrub_bytes_per_s > 0) wake_ns = std::min(wake_ns, scrub_due_ns_);
  return wake_ns;
}

// The caller holds slow_.
int DiskStore::commit() {
  {
    const std::lock_guard lock(mutex_);
    changed_since_ns_ = 0;
  }
  if (slab_->files().is_read_only()) return 0;
  const int error = slab_->commit();
  const std::lock_guard lock(mutex_);
  if (error != 0) ++counted_.faults[static_cast<std::size_t>(StoreFault::kIo)];
  health_.note_sync(error, clock_.now_ns());
  if (slab_->has_changes()) note_changes();
  return error;
}

void DiskStore::commit_if_due(std::int64_t now_ns) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_due =
        changed_since_ns_ != 0 && now_ns >= changed_since_ns_ + options_.commit_after_ns;
    if (!is_due) return;
    if (!health_.can_sync(now_ns)) {
      changed_since_ns_ = now_ns;
      return;
    }
  }
  const std::lock_guard slow(slow_);
  commit();
}

void DiskStore::scrub_if_due(std::int64_t now_ns) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_idle_ || options_.scrub_bytes_per_s == 0 || now_ns < scrub_due_ns_) return;
  }
  const std::lock_guard slow(slow_);
  const std::optional<StoreFault> fault = slab_->scrub(scrub_next_);
  const std::lock_guard lock(mutex_);
  if (!fault) {
    scrub_next_ = 0;
    scrub_due_ns_ = now_ns + options_.scrub_every_ns;
    return;
  }
  const double pause_s = static_cast<double>(slab_->codec().geometry().slot_bytes()) /
                         static_cast<double>(options_.scrub_bytes_per_s);
  scrub_due_ns_ = now_ns + static_cast<std::int64_t>(pause_s * 1e9);
  if (*fault != StoreFault::kNone) ++counted_.faults[static_cast<std::size_t>(*fault)];
  if (*fault == StoreFault::kIo) health_.note_scrub_failed(now_ns);
  if (slab_->has_changes()) note_changes();
}

// Called at every step of the engine: takes no lock unless a scrub may begin now.
void DiskStore::set_idle(bool is_idle) {
  if (is_idle_.exchange(is_idle, std::memory_order_relaxed) == is_idle || !is_idle) return;
  const std::lock_guard lock(mutex_);
  maintenance_due_.notify_one();
}

Result<kv::Removal> DiskStore::remove(const kv::OwnerTag& owner) { return remove_pages(owner); }

Result<kv::Removal> DiskStore::remove_all() { return remove_pages(std::nullopt); }

// Makes the owner's pages unreadable. No write may end behind that: waiting writes are cancelled,
// and running ones end first. Nothing: a write does not end.
std::optional<SlotIndex::TakenOut> DiskStore::take_out(const std::optional<kv::OwnerTag>& owner) {
  Lock lock(mutex_);
  queue_.cancel_writes(owner);
  queue_.expire(clock_.now_ns());
  queue_.hold_writes(true);
  const bool are_ended = ended_.wait_for(lock, nanoseconds(options_.request_limit_ns),
                                         [this] { return queue_.writes_in_flight() == 0; });
  unlock_and_notify(lock);
  std::optional<SlotIndex::TakenOut> out;
  if (are_ended) out = slab_->take_out(owner);
  lock.lock();
  queue_.hold_writes(false);
  lock.unlock();
  work_.notify_all();
  return out;
}

Result<kv::Removal> DiskStore::remove_pages(const std::optional<kv::OwnerTag>& owner) {
  if (slab_->files().is_read_only()) {
    return Error{ErrorCode::kUnsupported, fmt::format("{} is open read-only", layer_->path())};
  }
  std::unique_lock slow(slow_);
  {
    Lock lock(mutex_);
    if (!ended_.wait_for(lock, nanoseconds(kLoadWaitNs), [this] { return slab_->is_ready(); })) {
      return Error{ErrorCode::kIo, fmt::format("{}: its index is not read yet", layer_->path())};
    }
  }
  const bool are_all_verified = slab_->verify();
  const std::optional<SlotIndex::TakenOut> out = take_out(owner);
  const Result<kv::Removal> removed =
      out ? slab_->blank(*out, are_all_verified)
          : Error{ErrorCode::kIo, fmt::format("{}: a write does not end", layer_->path())};
  {
    const std::lock_guard lock(mutex_);
    if (slab_->has_changes()) note_changes();
  }
  slow.unlock();
  // Slabs of other models may have pages of the owner, too. Nobody else uses them: this process
  // holds the folder's lock.
  const std::lock_guard one_at_a_time(other_slabs_);
  const Result<kv::Removal> others = remove_from_others(*layer_, slab_->codec().geometry(), owner);
  if (!removed.ok()) return removed;
  if (!others.ok()) return others;
  kv::Removal all = removed.value();
  all.pages += others.value().pages;
  all.bytes += others.value().bytes;
  all.overwritten = all.overwritten && others.value().overwritten;
  return all;
}

Status DiskStore::flush(std::int64_t timeout_ns) {
  const auto deadline = std::chrono::steady_clock::now() + nanoseconds(timeout_ns);
  const auto late = [&](std::string_view what) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{}: {} after {} ms", layer_->path(), what, timeout_ns / 1'000'000)};
  };
  {
    Lock lock(mutex_);
    const std::uint64_t last = queue_.last_number();
    const bool are_ended =
        ended_.wait_until(lock, deadline, [&] { return queue_.are_writes_ended(last); });
    if (!are_ended) return late("writes still wait");
  }
  // The lock is tried again and again: ThreadSanitizer of GCC 12 does not know locks with a
  // deadline.
  std::unique_lock slow(slow_, std::try_to_lock);
  while (!slow.owns_lock() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (slow.try_lock()) break;
  }
  if (!slow.owns_lock()) return late("a removal or a scrub still runs");
  if (const int error = commit(); error != 0) {
    return Error{ErrorCode::kIo, fmt::format("{}: what was written is not durable: {}",
                                             layer_->path(), error_text(error))};
  }
  const std::uint64_t failed = slab_->syncs_failed();
  const std::lock_guard lock(mutex_);
  if (std::exchange(syncs_failed_, failed) != failed) {
    return Error{
        ErrorCode::kIo,
        fmt::format("{}: a sync failed, pages written before it were dropped", layer_->path())};
  }
  return ok_status();
}

kv::StoreStats DiskStore::stats() const {
  const Slab::Counts counts = slab_->counts();
  const std::lock_guard lock(mutex_);
  const std::int64_t now_ns = clock_.now_ns();
  kv::StoreStats stats = counted_;
  stats.bytes_max = options_.bytes_max;
  stats.bytes_used = counts.bytes;
  stats.pages = counts.pages;
  stats.pages_evicted = counts.evicted;
  stats.pages_evicted_unread = counts.evicted_unread;
  stats.requests_queued = queue_.size();
  stats.is_ready = slab_->is_ready();
  stats.is_on = health_.has_index() && health_.can_read(now_ns);
  stats.condition = health_.condition();
  if (stats.condition.empty() && slab_->files().is_read_only() && !options_.read_only) {
    stats.condition = "the file system is read-only";
  }
  return stats;
}

}  // namespace pagoda::store

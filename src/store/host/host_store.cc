#include "store/host/host_store.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/thread_pool.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kHostCopiesAtOnce = 16;
constexpr std::size_t kSlotsLookedAtOnce = 4096;  // by a removal, under the lock

std::uint32_t slots_of(const HostStoreOptions& options) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(options.bytes_max / options.page_bytes, UINT32_MAX - 1));
}

}  // namespace

std::size_t host_copy_threads() {
  constexpr std::size_t kMost = 4;
  return std::min(kMost, usable_cores());
}

Result<std::unique_ptr<HostStore>> HostStore::open(const HostStoreOptions& options,
                                                   std::unique_ptr<kv::PageCopier> copier) {
  ASSIGN_OR_RETURN(kv::HostMemory memory,
                   copier->take_memory(slots_of(options) * options.page_bytes));
  return std::unique_ptr<HostStore>(new HostStore(options, std::move(copier), std::move(memory)));
}

HostStore::HostStore(const HostStoreOptions& options, std::unique_ptr<kv::PageCopier> copier,
                     kv::HostMemory memory)
    : options_(options), copier_(std::move(copier)), bytes_(std::move(memory)) {
  const std::uint32_t count = slots_of(options);
  slots_.resize(count);
  lru_positions_.resize(count, lru_.end());
  for (std::uint32_t slot = count; slot-- > 0;) unused_.push_back(slot);
  stats_.bytes_max = count * options.page_bytes;
  thread_ = std::thread([this] { run(); });
}

HostStore::~HostStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void HostStore::on_report(std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
}

std::optional<std::size_t> HostStore::find(kv::StoreTicket /*ticket*/,
                                           std::span<const kv::PageKey> keys) {
  const std::lock_guard lock(mutex_);
  const auto absent = std::find_if(keys.begin(), keys.end(),
                                   [&](const auto& key) { return !slot_of_.contains(key); });
  return static_cast<std::size_t>(absent - keys.begin());
}

bool HostStore::keeps(const kv::PageKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = slot_of_.find(key);
  if (found == slot_of_.end()) return false;
  touch(found->second);
  return true;
}

void HostStore::read(kv::PageRead read) {
  const std::lock_guard lock(mutex_);
  const auto found = slot_of_.find(read.label.key);
  if (found == slot_of_.end()) return report(read.ticket, kv::StoreFault::kAbsent);
  Slot& slot = slots_[found->second];
  if (slot.label != read.label) return report(read.ticket, kv::StoreFault::kForeign);
  ASSERT(read.page.size() == options_.page_bytes, "pages have one size");
  if (!copier_->order().ok()) return report(read.ticket, kv::StoreFault::kIo);
  ++slot.copies_running;
  slot.was_read = true;
  touch(found->second);
  queue_.push_back({read.ticket, found->second, read.page});
  wake_.notify_one();
}

bool HostStore::write(kv::PageWrite write) {
  const std::lock_guard lock(mutex_);
  if (queue_.size() >= options_.writes_queued_max) return false;
  const auto found = slot_of_.find(write.label.key);
  if (found != slot_of_.end()) {  // the page is there or about to be
    report(write.ticket, kv::StoreFault::kNone);
    return true;
  }
  if (!copier_->order().ok()) {
    report(write.ticket, kv::StoreFault::kIo);
    return true;
  }
  const std::optional<std::uint32_t> slot = room();
  if (!slot) return false;
  ASSERT(write.page.size() == options_.page_bytes, "pages have one size");
  slots_[*slot] = {.label = std::move(write.label), .copies_running = 1};
  queue_.push_back({write.ticket, *slot, write.page});
  wake_.notify_one();
  return true;
}

void HostStore::cancel(std::span<const kv::StoreTicket> tickets) {
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Copy& copy) {
    const bool is_read = std::holds_alternative<std::span<std::byte>>(copy.page);
    if (!is_read || std::find(tickets.begin(), tickets.end(), copy.ticket) == tickets.end()) {
      return false;
    }
    if (--slots_[copy.slot].copies_running == 0 && slots_[copy.slot].is_removed)
      free_slot(copy.slot);
    report(copy.ticket, kv::StoreFault::kCancelled);
    return true;
  });
}

void HostStore::poll(std::vector<kv::StoreReport>& reports) {
  const std::lock_guard lock(mutex_);
  reports.insert(reports.end(), reports_.begin(), reports_.end());
  reports_.clear();
}

// Returns a free slot; where none is free, evicts the least recently used page that is not copied.
std::optional<std::uint32_t> HostStore::room() {
  if (unused_.empty()) {
    const auto victim = std::find_if(lru_.begin(), lru_.end(), [&](std::uint32_t slot) {
      return slots_[slot].copies_running == 0;
    });
    if (victim == lru_.end()) return std::nullopt;
    ++stats_.pages_evicted;
    stats_.pages_evicted_unread += slots_[*victim].was_read ? 0 : 1;
    free_slot(*victim);
  }
  const std::uint32_t slot = unused_.back();
  unused_.pop_back();
  return slot;
}

void HostStore::touch(std::uint32_t slot) { lru_.splice(lru_.end(), lru_, lru_positions_[slot]); }

// The page is not found any more.
void HostStore::forget(std::uint32_t slot) {
  const auto found = slot_of_.find(slots_[slot].label.key);
  if (found != slot_of_.end() && found->second == slot) slot_of_.erase(found);
}

void HostStore::free_slot(std::uint32_t slot) {
  forget(slot);
  if (slots_[slot].is_written) lru_.erase(lru_positions_[slot]);
  slots_[slot] = {};
  unused_.push_back(slot);
}

kv::PageCopy HostStore::move_of(const Copy& copy) {
  if (const auto* const to = std::get_if<std::span<std::byte>>(&copy.page)) {
    return {.to = to->data(), .from = slot_bytes(copy.slot), .bytes = to->size()};
  }
  const auto from = std::get<std::span<const std::byte>>(copy.page);
  return {.to = slot_bytes(copy.slot), .from = from.data(), .bytes = from.size()};
}

void HostStore::run() {
  std::vector<Copy> copies;
  std::vector<kv::PageCopy> moves;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    copies.clear();
    moves.clear();
    while (!queue_.empty() && copies.size() < kHostCopiesAtOnce) {
      copies.push_back(queue_.front());
      moves.push_back(move_of(queue_.front()));
      queue_.pop_front();
    }
    copying_ = static_cast<std::uint32_t>(copies.size());
    lock.unlock();
    const Status moved = copier_->copy(moves);
    lock.lock();
    copying_ = 0;
    const auto fault = moved.ok() ? kv::StoreFault::kNone : kv::StoreFault::kIo;
    for (const Copy& copy : copies) end(copy, fault);
    if (notify_) {
      const std::function<void()> notify = notify_;
      lock.unlock();
      notify();
      lock.lock();
    }
  }
}

void HostStore::end(const Copy& copy, kv::StoreFault fault) {
  Slot& slot = slots_[copy.slot];
  --slot.copies_running;
  const bool is_read = std::holds_alternative<std::span<std::byte>>(copy.page);
  if (fault != kv::StoreFault::kNone) {
    // A failed write leaves no page; a failed read leaves the page it read.
    slot.is_removed = slot.is_removed || !is_read;
  } else if (is_read) {
    ++stats_.pages_read;
    stats_.bytes_read += options_.page_bytes;
  } else {
    ++stats_.pages_written;
    stats_.bytes_written += options_.page_bytes;
    slot.is_written = true;
    lru_positions_[copy.slot] = lru_.insert(lru_.end(), copy.slot);
    // Two writes of one page may have run at once: the first stays.
    if (!slot_of_.try_emplace(slot.label.key, copy.slot).second) slot.is_removed = true;
  }
  if (slot.copies_running == 0 && slot.is_removed) free_slot(copy.slot);
  report(copy.ticket, fault);
}

void HostStore::report(kv::StoreTicket ticket, kv::StoreFault fault) {
  ++stats_.faults[static_cast<std::size_t>(fault)];
  reports_.push_back({.ticket = ticket, .fault = fault, .ended_ns = SteadyClock().now_ns()});
}

// Pages are overwritten without the lock, some at a time: the engine's thread takes it every step.
template <class Chosen>
kv::Removal HostStore::remove_where(Chosen&& chosen) {
  kv::Removal removed = {.overwritten = true};
  std::vector<std::uint32_t> erased;
  for (std::uint32_t next = 0; next < slots_.size();) {
    erased.clear();
    {
      const std::lock_guard lock(mutex_);
      const auto end = static_cast<std::uint32_t>(
          std::min<std::size_t>(slots_.size(), next + kSlotsLookedAtOnce));
      for (; next < end; ++next) {
        Slot& slot = slots_[next];
        const bool in_use = slot.is_written || slot.copies_running > 0;
        if (!in_use || slot.is_removed || !chosen(slot.label)) continue;
        ++removed.pages;
        forget(next);
        slot.is_removed = true;
        if (slot.copies_running > 0) {
          removed.overwritten = false;
        } else {
          slot.copies_running = 1;  // the overwriting: the slot is freed after it
          erased.push_back(next);
        }
      }
    }
    for (const std::uint32_t slot : erased) {
      std::memset(slot_bytes(slot), 0, options_.page_bytes);
      const std::lock_guard lock(mutex_);
      free_slot(slot);
    }
  }
  removed.bytes = removed.pages * options_.page_bytes;
  return removed;
}

Result<kv::Removal> HostStore::remove(const kv::OwnerTag& owner) {
  return remove_where([&](const kv::PageLabel& label) { return label.owner == owner; });
}

Result<kv::Removal> HostStore::remove_all() {
  return remove_where([](const kv::PageLabel&) { return true; });
}

Status HostStore::flush(std::int64_t timeout_ns) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  while (std::chrono::steady_clock::now() < until) {
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty() && copying_ == 0) return ok_status();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Error{ErrorCode::kExhausted, "host tier: copies are still running"};
}

kv::StoreStats HostStore::stats() const {
  const std::lock_guard lock(mutex_);
  kv::StoreStats stats = stats_;
  stats.pages = slot_of_.size();
  stats.bytes_used = slot_of_.size() * options_.page_bytes;
  stats.requests_queued = queue_.size() + copying_;
  return stats;
}

}  // namespace pagoda::store

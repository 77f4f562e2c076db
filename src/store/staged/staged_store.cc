#include "store/staged/staged_store.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kStagedMovesAtOnce = 16;

}  // namespace

Result<std::unique_ptr<StagedStore>> StagedStore::open(std::unique_ptr<kv::PageStore> behind,
                                                       std::unique_ptr<kv::PageCopier> copier,
                                                       const StagedStoreOptions& options) {
  ASSERT(options.slots >= 2, "one slot for writes, one for reads");
  ASSIGN_OR_RETURN(kv::HostMemory memory, copier->take_memory(options.slots * options.page_bytes));
  return std::unique_ptr<StagedStore>(
      new StagedStore(std::move(behind), std::move(copier), std::move(memory), options));
}

StagedStore::StagedStore(std::unique_ptr<kv::PageStore> behind,
                         std::unique_ptr<kv::PageCopier> copier, kv::HostMemory memory,
                         const StagedStoreOptions& options)
    : behind_(std::move(behind)),
      copier_(std::move(copier)),
      memory_(std::move(memory)),
      options_(options) {
  for (std::uint32_t slot = options.slots; slot-- > 0;) slots_free_.push_back(slot);
  thread_ = std::thread([this] { run(); });
}

StagedStore::~StagedStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  behind_.reset();  // the store behind may be copying from and to the slots
}

void StagedStore::on_report(std::function<void()> notify) {
  behind_->on_report(notify);
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
}

void StagedStore::read(kv::PageRead read) {
  ASSERT(read.page.size() == options_.page_bytes, "pages have one size");
  if (slots_free_.empty()) {
    reads_waiting_.push_back(std::move(read));
  } else {
    begin(std::move(read));
  }
}

void StagedStore::begin(kv::PageRead read) {
  const std::uint32_t slot = slots_free_.back();
  slots_free_.pop_back();
  staged_pages_[read.ticket] = {.slot = slot, .page = read.page, .label = {}};
  read.page = slot_bytes(slot);
  behind_->read(std::move(read));
}

bool StagedStore::write(kv::PageWrite write) {
  ASSERT(write.page.size() == options_.page_bytes, "pages have one size");
  if (slots_free_.empty() || writes_under_way_ >= options_.slots / 2) return false;
  if (!copier_->order().ok()) {
    ended_.push_back({.ticket = write.ticket, .fault = kv::StoreFault::kIo});
    return true;
  }
  const std::uint32_t slot = slots_free_.back();
  slots_free_.pop_back();
  ++writes_under_way_;
  const kv::PageCopy move = {
      .to = slot_bytes(slot).data(), .from = write.page.data(), .bytes = options_.page_bytes};
  staged_pages_[write.ticket] = {
      .slot = slot, .page = {}, .label = std::move(write.label), .is_write = true};
  queue_move(write.ticket, move);
  return true;
}

void StagedStore::cancel(std::span<const kv::StoreTicket> tickets) {
  std::erase_if(reads_waiting_, [&](const kv::PageRead& read) {
    if (std::find(tickets.begin(), tickets.end(), read.ticket) == tickets.end()) return false;
    ended_.push_back({.ticket = read.ticket, .fault = kv::StoreFault::kCancelled});
    return true;
  });
  behind_->cancel(tickets);
}

void StagedStore::poll(std::vector<kv::StoreReport>& reports) {
  landed_.clear();
  {
    const std::lock_guard lock(mutex_);
    landed_.swap(moved_);
  }
  behind_reports_.clear();
  behind_->poll(behind_reports_);
  for (const kv::StoreReport& report : behind_reports_) on_store_report(report, reports);
  for (const kv::StoreTicket ticket : std::exchange(refused_, {})) hand_on(ticket, reports);
  for (const Moved& moved : landed_) on_copied(moved, reports);
  while (!slots_free_.empty() && !reads_waiting_.empty()) {
    begin(std::move(reads_waiting_.front()));
    reads_waiting_.pop_front();
  }
  reports.insert(reports.end(), ended_.begin(), ended_.end());
  ended_.clear();
}

void StagedStore::on_store_report(const kv::StoreReport& report,
                                  std::vector<kv::StoreReport>& reports) {
  const auto found = staged_pages_.find(report.ticket);
  if (found == staged_pages_.end()) {  // the report of a lookup
    reports.push_back(report);
    return;
  }
  const StagedPage& staged = found->second;
  if (staged.is_write || report.fault != kv::StoreFault::kNone) {
    return end(report, reports);
  }
  if (!copier_->order().ok()) {
    return end({.ticket = report.ticket, .fault = kv::StoreFault::kIo}, reports);
  }
  queue_move(report.ticket, {.to = staged.page.data(),
                             .from = slot_bytes(staged.slot).data(),
                             .bytes = options_.page_bytes});
}

void StagedStore::on_copied(const Moved& moved, std::vector<kv::StoreReport>& reports) {
  --moving_;
  StagedPage& staged = staged_pages_.at(moved.ticket);
  kv::StoreReport report = {.ticket = moved.ticket, .ended_ns = moved.ended_ns};
  if (!moved.ok) {
    ++faults_;
    report.fault = kv::StoreFault::kIo;
  }
  if (!moved.ok || !staged.is_write) return end(report, reports);
  hand_on(moved.ticket, reports);
}

void StagedStore::hand_on(kv::StoreTicket ticket, std::vector<kv::StoreReport>& reports) {
  const StagedPage& staged = staged_pages_.at(ticket);
  if (behind_->write({ticket, staged.label, slot_bytes(staged.slot)})) return;
  if (behind_->takes_writes()) return refused_.push_back(ticket);
  end({.ticket = ticket, .fault = kv::StoreFault::kNoRoom}, reports);
}

void StagedStore::end(const kv::StoreReport& report, std::vector<kv::StoreReport>& reports) {
  const auto found = staged_pages_.find(report.ticket);
  slots_free_.push_back(found->second.slot);
  writes_under_way_ -= found->second.is_write ? 1 : 0;
  staged_pages_.erase(found);
  reports.push_back(report);
}

void StagedStore::queue_move(kv::StoreTicket ticket, const kv::PageCopy& move) {
  ++moving_;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({ticket, move});
  }
  wake_.notify_one();
}

void StagedStore::run() {
  std::vector<Moved> outcome;
  std::vector<kv::PageCopy> moves;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    outcome.clear();
    moves.clear();
    while (!jobs_.empty() && moves.size() < kStagedMovesAtOnce) {
      outcome.push_back({.ticket = jobs_.front().ticket});
      moves.push_back(jobs_.front().move);
      jobs_.pop_front();
    }
    lock.unlock();
    const bool ok = copier_->copy(moves).ok();
    lock.lock();
    for (Moved& each : outcome) {
      each.ok = ok;
      each.ended_ns = clock_.now_ns();
    }
    moved_.insert(moved_.end(), outcome.begin(), outcome.end());
    const std::function<void()> notify = notify_;
    lock.unlock();
    if (notify) notify();
    lock.lock();
  }
}

kv::StoreStats StagedStore::stats() const {
  kv::StoreStats stats = behind_->stats();
  stats.requests_queued += moving_;
  stats.faults[static_cast<std::size_t>(kv::StoreFault::kIo)] += faults_;
  return stats;
}

}  // namespace pagoda::store

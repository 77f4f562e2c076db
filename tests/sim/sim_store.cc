#include "sim/sim_store.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"

namespace pagoda::sim {

SimStore::SimStore(const SimStoreOptions& options, std::uint64_t seed, const Clock& clock)
    : options_(options), dice_(seed), clock_(clock) {}

void SimStore::later(kv::StoreTicket ticket, bool is_read, std::function<kv::StoreReport()> end) {
  const auto latency = static_cast<std::int64_t>(
      dice_.between(0, static_cast<std::uint64_t>(options_.latency_ns_max)));
  running_.push_back({clock_.now_ns() + latency, ticket, std::move(end), is_read});
}

std::size_t SimStore::count_found(std::span<const kv::PageKey> keys) const {
  const auto absent = std::find_if(keys.begin(), keys.end(),
                                   [&](const auto& key) { return !pages_.contains(key); });
  return static_cast<std::size_t>(absent - keys.begin());
}

std::optional<std::size_t> SimStore::find(kv::StoreTicket ticket,
                                          std::span<const kv::PageKey> keys) {
  if (!options_.asks) return count_found(keys);
  later(ticket, false, [this, ticket, asked = std::vector(keys.begin(), keys.end())] {
    if (fails()) return kv::StoreReport{.ticket = ticket, .fault = kv::StoreFault::kTimeout};
    return kv::StoreReport{.ticket = ticket, .keys_found = count_found(asked)};
  });
  return std::nullopt;
}

void SimStore::read(kv::PageRead read) {
  later(read.ticket, true, [this, read] { return give(read); });
}

bool SimStore::write(kv::PageWrite write) {
  if (running_.size() >= options_.operations_max) return false;
  later(write.ticket, false, [this, write] { return keep(write); });
  return true;
}

kv::StoreReport SimStore::give(const kv::PageRead& read) {
  const auto found = pages_.find(read.label.key);
  if (found == pages_.end()) return {.ticket = read.ticket, .fault = kv::StoreFault::kAbsent};
  const kv::PageLabel& kept = found->second.label;
  ASSERT(kept.tokens == read.label.tokens && kept.parent == read.label.parent,
         "a name stands for one block");
  // A salt that was forgotten may come back as another tenant's.
  if (kept.owner != read.label.owner) {
    return {.ticket = read.ticket, .fault = kv::StoreFault::kForeign};
  }
  if (fails()) {
    // Some of the bytes have arrived, as a device may leave it.
    std::copy_n(found->second.bytes.begin(), read.page.size() / 2, read.page.begin());
    ++faults_;
    return {.ticket = read.ticket, .fault = kv::StoreFault::kDamaged};
  }
  const Page* page = &found->second;
  std::size_t bytes = read.page.size();
  if (sabotage_ == StoreSabotage::kForeignPage && pages_.size() > 1) {
    page = &(found == pages_.begin() ? std::prev(pages_.end()) : std::prev(found))->second;
    sabotaged_ = true;
  } else if (sabotage_ == StoreSabotage::kTornPage) {
    bytes /= 2;
    std::fill(read.page.begin(), read.page.end(), std::byte{0x55});
    sabotaged_ = true;
  }
  std::copy_n(page->bytes.begin(), bytes, read.page.begin());
  ++pages_read_;
  return {.ticket = read.ticket};
}

kv::StoreReport SimStore::keep(const kv::PageWrite& write) {
  if (fails()) {
    ++faults_;
    return {.ticket = write.ticket, .fault = kv::StoreFault::kIo};
  }
  if (!pages_.contains(write.label.key) && pages_.size() == options_.pages_max) {
    auto victim = pages_.begin();
    std::advance(victim, static_cast<std::ptrdiff_t>(dice_.between(0, pages_.size() - 1)));
    pages_.erase(victim);
  }
  pages_[write.label.key] = {write.label, {write.page.begin(), write.page.end()}};
  ASSERT(pages_.size() <= options_.pages_max, "a tier stays within its bytes");
  ++pages_written_;
  return {.ticket = write.ticket};
}

void SimStore::cancel(std::span<const kv::StoreTicket> tickets) {
  for (Operation& operation : running_) {
    const bool asked = std::find(tickets.begin(), tickets.end(), operation.ticket) != tickets.end();
    if (!asked || !operation.is_read || dice_.one_in(3)) continue;  // the read has begun
    operation.end = [ticket = operation.ticket] {
      return kv::StoreReport{.ticket = ticket, .fault = kv::StoreFault::kCancelled};
    };
    operation.due_ns = clock_.now_ns();
  }
}

void SimStore::poll(std::vector<kv::StoreReport>& reports) {
  // A report may be followed by operations of others: only those that are due now are taken.
  std::vector<Operation> due;
  const auto is_due = [&](const Operation& operation) {
    return operation.due_ns <= clock_.now_ns();
  };
  std::copy_if(running_.begin(), running_.end(), std::back_inserter(due), is_due);
  std::erase_if(running_, is_due);
  for (const Operation& operation : due) reports.push_back(operation.end());
}

void SimStore::hurry() {
  options_.latency_ns_max = 0;
  for (Operation& operation : running_) operation.due_ns = clock_.now_ns();
}

Result<kv::Removal> SimStore::remove(const kv::OwnerTag& owner) {
  const std::size_t removed =
      std::erase_if(pages_, [&](const auto& entry) { return entry.second.label.owner == owner; });
  return kv::Removal{.pages = removed};
}

bool SimStore::has_pages_of(const kv::OwnerTag& owner) const {
  return std::any_of(pages_.begin(), pages_.end(),
                     [&](const auto& entry) { return entry.second.label.owner == owner; });
}

Result<kv::Removal> SimStore::remove_all() {
  const kv::Removal removed = {.pages = pages_.size()};
  pages_.clear();
  return removed;
}

kv::StoreStats SimStore::stats() const {
  kv::StoreStats stats;
  stats.pages = pages_.size();
  stats.requests_queued = running_.size();
  return stats;
}

}  // namespace pagoda::sim

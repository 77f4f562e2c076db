#include "store/disk/disk_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"

namespace pagoda::store {

using kv::StoreFault;

namespace {

constexpr std::uint64_t kWriteEvery = 4;  // one of so many requests is a write, if one waits

}  // namespace

void DiskQueue::put_read(kv::PageRead read, std::int64_t now_ns) {
  auto request = std::make_unique<DiskRequest>();
  request->number = ++requests_made_;
  request->ticket = read.ticket;
  request->label = std::move(read.label);
  request->into = read.page;
  request->asked_ns = now_ns;
  reads_.push_back(std::move(request));
}

void DiskQueue::put_write(kv::PageWrite write, std::int64_t now_ns) {
  auto request = std::make_unique<DiskRequest>();
  request->number = ++requests_made_;
  request->ticket = write.ticket;
  request->label = std::move(write.label);
  request->from = write.page;
  request->is_write = true;
  request->asked_ns = now_ns;
  writes_open_.insert(request->number);
  keys_written_.insert(request->label.key);
  writes_.push_back(std::move(request));
}

void DiskQueue::put_lookup(kv::StoreTicket ticket, std::span<const kv::PageKey> keys,
                           std::int64_t now_ns) {
  lookups_.push_back({ticket, {keys.begin(), keys.end()}, now_ns});
}

void DiskQueue::cancel_reads(std::span<const kv::StoreTicket> tickets) {
  for (const std::unique_ptr<DiskRequest>& request : reads_) {
    if (std::find(tickets.begin(), tickets.end(), request->ticket) != tickets.end()) {
      request->is_cancelled = true;
      has_cancelled_ = true;
    }
  }
}

void DiskQueue::cancel_writes(const std::optional<kv::OwnerTag>& owner) {
  for (const std::unique_ptr<DiskRequest>& request : writes_) {
    if (!owner || request->label.owner == *owner) request->is_cancelled = true;
  }
  has_cancelled_ = true;
}

DiskQueue::Requests* DiskQueue::next_queue() {
  const bool can_write = !writes_.empty() && !are_writes_held_;
  const bool writes_go_first = takes_ % kWriteEvery == 0;
  if (can_write && (reads_.empty() || writes_go_first)) return &writes_;
  return reads_.empty() ? nullptr : &reads_;
}

std::unique_ptr<DiskRequest> DiskQueue::next() {
  Requests* const queue = next_queue();
  if (queue == nullptr) return nullptr;
  ++takes_;
  std::unique_ptr<DiskRequest> request = std::move(queue->front());
  queue->pop_front();
  in_flight_.insert(request.get());
  if (request->is_write) ++writes_in_flight_;
  return request;
}

void DiskQueue::end(DiskRequest& request, StoreFault fault) {
  in_flight_.erase(&request);
  if (request.is_write) {
    --writes_in_flight_;
    forget_write(request);
  }
  if (!request.is_reported) report_(request.ticket, fault, 0);
}

void DiskQueue::forget_write(const DiskRequest& request) {
  writes_open_.erase(request.number);
  keys_written_.erase(keys_written_.find(request.label.key));
}

void DiskQueue::expire(Requests& queue, std::int64_t now_ns) {
  const bool is_front_late = !queue.empty() && is_late(*queue.front(), now_ns);
  if (!is_front_late && !has_cancelled_) return;
  std::erase_if(queue, [&](const std::unique_ptr<DiskRequest>& request) {
    const bool late = is_late(*request, now_ns);
    if (!late && !request->is_cancelled) return false;
    if (request->is_write) forget_write(*request);
    report_(request->ticket, late ? StoreFault::kTimeout : StoreFault::kCancelled, 0);
    return true;
  });
}

void DiskQueue::expire(std::int64_t now_ns) {
  expire(reads_, now_ns);
  expire(writes_, now_ns);
  has_cancelled_ = false;
  for (DiskRequest* const request : in_flight_) {
    if (!is_late(*request, now_ns) || request->is_copying || request->is_reported) continue;
    request->is_reported = true;
    report_(request->ticket, StoreFault::kTimeout, 0);
  }
  std::erase_if(lookups_, [&](const Lookup& lookup) {
    if (now_ns - lookup.asked_ns < limits_.lookup_limit_ns) return false;
    report_(lookup.ticket, StoreFault::kNone, 0);
    return true;
  });
}

std::int64_t DiskQueue::next_timeout_ns() const {
  std::int64_t next_ns = std::numeric_limits<std::int64_t>::max();
  for (const DiskRequest* const request : in_flight_) {
    if (request->is_reported) continue;
    next_ns = std::min(next_ns, request->asked_ns + limits_.request_limit_ns + 1);
  }
  return next_ns;
}

void DiskQueue::check() const {
  const auto is_ordered = [](const Requests& queue) {
    return std::is_sorted(queue.begin(), queue.end(),
                          [](const auto& a, const auto& b) { return a->number < b->number; });
  };
  ASSERT(is_ordered(reads_) && is_ordered(writes_), "requests wait in the order of calls");
  std::size_t writes_running = 0;
  for (const DiskRequest* const request : in_flight_) {
    writes_running += request->is_write ? 1 : 0;
    ASSERT(!request->is_reported || !request->is_copying, "late bytes are not touched");
    ASSERT(!request->is_write || writes_open_.contains(request->number), "it has not ended");
  }
  ASSERT(writes_running == writes_in_flight_, "writes in flight are counted");
  ASSERT(writes_open_.size() == writes_.size() + writes_running, "writes are open until they end");
  ASSERT(keys_written_.size() == writes_open_.size(), "every open write has its key");
}

}  // namespace pagoda::store

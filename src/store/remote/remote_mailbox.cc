#include "store/remote/remote_mailbox.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace pagoda::store {

using kv::StoreFault;

// Callers

std::size_t RemoteMailbox::weight(const StoreRequest& request) {
  return request.kind == RequestKind::kWrite ? request.from.size() : 1;
}

std::size_t& RemoteMailbox::queued(const StoreRequest& request) {
  return request.kind == RequestKind::kWrite ? write_bytes_queued_ : reads_queued_;
}

bool RemoteMailbox::put(StoreRequest request) {
  {
    const std::lock_guard lock(mutex_);
    const std::size_t most = request.kind == RequestKind::kWrite ? options_.write_bytes_queued_max
                                                                 : options_.reads_queued_max;
    const bool is_full = queued(request) > 0 && queued(request) + weight(request) > most;
    if (!stats_.is_on || is_full) return false;  // one request always fits, however large
    if (request.kind == RequestKind::kWrite && !writing_.is_on(SteadyClock().now_ns()))
      return false;
    queued(request) += weight(request);
    if (request.kind != RequestKind::kLookup) ++stats_.requests_queued;
    request.number = next_number_++;
    inbox_.requests.push_back(std::move(request));
  }
  wakeup_.notify();
  return true;
}

void RemoteMailbox::put_report(const kv::StoreReport& report) {
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back(report);
    reports_.back().ended_ns = SteadyClock().now_ns();
    ++stats_.faults[static_cast<std::size_t>(report.fault)];
    notify_due_ = true;
  }
  wakeup_.notify();
}

bool RemoteMailbox::is_on() const {
  const std::lock_guard lock(mutex_);
  return stats_.is_on;
}

bool RemoteMailbox::takes_writes() const {
  const std::lock_guard lock(mutex_);
  return stats_.is_on && writing_.is_on(SteadyClock().now_ns());
}

void RemoteMailbox::cancel(std::span<const kv::StoreTicket> tickets) {
  {
    const std::lock_guard lock(mutex_);
    if (!stats_.is_on) return;
    inbox_.cancelled.insert(inbox_.cancelled.end(), tickets.begin(), tickets.end());
  }
  wakeup_.notify();
}

void RemoteMailbox::poll(std::vector<kv::StoreReport>& reports) {
  const std::lock_guard lock(mutex_);
  reports.insert(reports.end(), reports_.begin(), reports_.end());
  reports_.clear();
}

void RemoteMailbox::on_report(std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
}

Result<kv::Removal> RemoteMailbox::wait_for(Job job, std::int64_t timeout_ns) {
  const auto shared = std::make_shared<Job>(std::move(job));
  std::unique_lock lock(mutex_);
  if (!stats_.is_on) return Error{ErrorCode::kIo, stats_.condition};
  shared->number = next_number_++;
  inbox_.jobs.push_back(shared);
  wakeup_.notify();
  const bool ended = changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                                       [&] { return shared->result.has_value(); });
  if (ended) return *shared->result;
  return Error{ErrorCode::kExhausted,
               fmt::format("{}: not done after {:.1f} s", options_.url.shown(),
                           static_cast<double>(timeout_ns) * 1e-9)};
}

Status RemoteMailbox::await_on(std::int64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return stats_.is_on; });
  if (stats_.is_on) return ok_status();
  if (!stats_.condition.empty()) return Error{ErrorCode::kIo, stats_.condition};
  return Error{ErrorCode::kExhausted, fmt::format("{}: no connection yet", options_.url.shown())};
}

kv::StoreStats RemoteMailbox::stats() const {
  const std::lock_guard lock(mutex_);
  kv::StoreStats stats = stats_;
  if (stats.condition.empty()) stats.condition = writing_.reason();
  if (stats.condition.empty() && !node_condition_.empty()) {
    stats.condition = fmt::format("{}: {}", options_.url.shown(), node_condition_);
  }
  return stats;
}

void RemoteMailbox::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wakeup_.notify();
}

// The store's thread

RemoteMailbox::Inbox RemoteMailbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(inbox_, {});
}

void RemoteMailbox::report(const StoreRequest& request) {
  const std::lock_guard lock(mutex_);
  queued(request) -= weight(request);
  if (request.kind != RequestKind::kLookup) --stats_.requests_queued;
  reports_.push_back({request.ticket, request.fault, request.keys_found, SteadyClock().now_ns()});
  notify_due_ = true;
  if (request.fault == StoreFault::kNone) {
    stats_.condition.clear();
    if (request.kind == RequestKind::kRead) {
      ++stats_.pages_read;
      stats_.bytes_read += request.into.size();
    } else if (request.kind == RequestKind::kWrite) {
      writing_.succeed();
      ++stats_.pages_written;
      stats_.bytes_written += request.from.size();
    }
    return;
  }
  ++stats_.faults[static_cast<std::size_t>(request.fault)];
  if (!request.refusal.empty()) {
    stats_.condition = fmt::format("{}: {}", options_.url.shown(), request.refusal);
    if (request.kind == RequestKind::kWrite) {
      writing_.fail(SteadyClock().now_ns(), stats_.condition);
    }
  }
}

void RemoteMailbox::end(const std::shared_ptr<Job>& job, Result<kv::Removal> result) {
  const std::lock_guard lock(mutex_);
  job->result = std::move(result);
  changed_.notify_all();
}

void RemoteMailbox::turn_on() {
  const std::lock_guard lock(mutex_);
  stats_.is_on = true;
  stats_.is_ready = true;
  stats_.condition.clear();
  changed_.notify_all();
}

RemoteMailbox::Inbox RemoteMailbox::turn_off(const std::string& condition) {
  const std::lock_guard lock(mutex_);
  stats_.is_on = false;
  stats_.is_ready = true;
  notify_due_ = true;  // a caller whose write was refused need not wait
  stats_.condition = fmt::format("{}: {}", options_.url.shown(), condition);
  return std::exchange(inbox_, {});
}

void RemoteMailbox::show_nodes(const NodeCounts& counts, const std::string& condition) {
  const std::lock_guard lock(mutex_);
  stats_.nodes = counts.nodes;
  stats_.nodes_on = counts.nodes_on;
  stats_.redirections = counts.redirections;
  if (node_condition_ != condition) node_condition_ = condition;
}

void RemoteMailbox::notify_if_due() {
  std::function<void()> notify;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(notify_due_, false)) return;
    notify = notify_;
  }
  if (notify) notify();
}

bool RemoteMailbox::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace pagoda::store

#include "store/remote/remote_desk.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace pagoda::store {

using kv::StoreFault;

// Callers

std::size_t RemoteDesk::weight(const Errand& errand) {
  return errand.kind == ErrandKind::kWrite ? errand.from.size() : 1;
}

std::size_t& RemoteDesk::queued(const Errand& errand) {
  return errand.kind == ErrandKind::kWrite ? write_bytes_queued_ : reads_queued_;
}

bool RemoteDesk::put(Errand errand) {
  {
    const std::lock_guard lock(mutex_);
    const std::size_t most = errand.kind == ErrandKind::kWrite ? options_.write_bytes_queued_max
                                                               : options_.reads_queued_max;
    const bool is_full = queued(errand) > 0 && queued(errand) + weight(errand) > most;
    if (!stats_.is_on || is_full) return false;  // one always fits, however large
    if (errand.kind == ErrandKind::kWrite && !writing_.is_on(SteadyClock().now_ns())) return false;
    queued(errand) += weight(errand);
    if (errand.kind != ErrandKind::kQuestion) ++stats_.requests_queued;
    errand.number = next_number_++;
    inbox_.errands.push_back(std::move(errand));
  }
  wake_bell_.ring();
  return true;
}

void RemoteDesk::put_report(const kv::StoreReport& report) {
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back(report);
    reports_.back().ended_ns = SteadyClock().now_ns();
    ++stats_.faults[static_cast<std::size_t>(report.fault)];
    ring_due_ = true;
  }
  wake_bell_.ring();
}

bool RemoteDesk::is_on() const {
  const std::lock_guard lock(mutex_);
  return stats_.is_on;
}

bool RemoteDesk::takes_writes() const {
  const std::lock_guard lock(mutex_);
  return stats_.is_on && writing_.is_on(SteadyClock().now_ns());
}

void RemoteDesk::cancel(std::span<const kv::StoreTicket> tickets) {
  {
    const std::lock_guard lock(mutex_);
    if (!stats_.is_on) return;
    inbox_.cancelled.insert(inbox_.cancelled.end(), tickets.begin(), tickets.end());
  }
  wake_bell_.ring();
}

void RemoteDesk::poll(std::vector<kv::StoreReport>& reports) {
  const std::lock_guard lock(mutex_);
  reports.insert(reports.end(), reports_.begin(), reports_.end());
  reports_.clear();
}

void RemoteDesk::on_report(std::function<void()> bell) {
  const std::lock_guard lock(mutex_);
  bell_ = std::move(bell);
}

Result<kv::Removal> RemoteDesk::wait_for(Job job, std::int64_t timeout_ns) {
  const auto shared = std::make_shared<Job>(std::move(job));
  std::unique_lock lock(mutex_);
  if (!stats_.is_on) return Error{ErrorCode::kIo, stats_.condition};
  shared->number = next_number_++;
  inbox_.jobs.push_back(shared);
  wake_bell_.ring();
  const bool ended = changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                                       [&] { return shared->result.has_value(); });
  if (ended) return *shared->result;
  return Error{ErrorCode::kExhausted,
               fmt::format("{}: not done after {:.1f} s", options_.url.shown(),
                           static_cast<double>(timeout_ns) * 1e-9)};
}

Status RemoteDesk::await_on(std::int64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return stats_.is_on; });
  if (stats_.is_on) return ok_status();
  if (!stats_.condition.empty()) return Error{ErrorCode::kIo, stats_.condition};
  return Error{ErrorCode::kExhausted, fmt::format("{}: no connection yet", options_.url.shown())};
}

kv::StoreStats RemoteDesk::stats() const {
  const std::lock_guard lock(mutex_);
  kv::StoreStats stats = stats_;
  if (stats.condition.empty()) stats.condition = writing_.reason();
  return stats;
}

void RemoteDesk::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_bell_.ring();
}

// The store's thread

RemoteDesk::Inbox RemoteDesk::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(inbox_, {});
}

void RemoteDesk::report(const Errand& errand) {
  const std::lock_guard lock(mutex_);
  queued(errand) -= weight(errand);
  if (errand.kind != ErrandKind::kQuestion) --stats_.requests_queued;
  reports_.push_back({errand.ticket, errand.fault, errand.keys_found, SteadyClock().now_ns()});
  ring_due_ = true;
  if (errand.fault == StoreFault::kNone) {
    stats_.condition.clear();
    if (errand.kind == ErrandKind::kRead) {
      ++stats_.pages_read;
      stats_.bytes_read += errand.into.size();
    } else if (errand.kind == ErrandKind::kWrite) {
      writing_.succeed();
      ++stats_.pages_written;
      stats_.bytes_written += errand.from.size();
    }
    return;
  }
  ++stats_.faults[static_cast<std::size_t>(errand.fault)];
  if (!errand.refusal.empty()) {
    stats_.condition = fmt::format("{}: {}", options_.url.shown(), errand.refusal);
    if (errand.kind == ErrandKind::kWrite) {
      writing_.fail(SteadyClock().now_ns(), stats_.condition);
    }
  }
}

void RemoteDesk::end(const std::shared_ptr<Job>& job, Result<kv::Removal> result) {
  const std::lock_guard lock(mutex_);
  job->result = std::move(result);
  changed_.notify_all();
}

void RemoteDesk::turn_on() {
  const std::lock_guard lock(mutex_);
  stats_.is_on = true;
  stats_.is_ready = true;
  stats_.condition.clear();
  changed_.notify_all();
}

RemoteDesk::Inbox RemoteDesk::turn_off(const std::string& condition) {
  const std::lock_guard lock(mutex_);
  stats_.is_on = false;
  stats_.is_ready = true;
  ring_due_ = true;  // who was refused a write need not wait
  stats_.condition = fmt::format("{}: {}", options_.url.shown(), condition);
  return std::exchange(inbox_, {});
}

void RemoteDesk::ring_if_due() {
  std::function<void()> bell;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(ring_due_, false)) return;
    bell = bell_;
  }
  if (bell) bell();
}

bool RemoteDesk::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace pagoda::store

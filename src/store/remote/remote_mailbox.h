// RemoteMailbox holds requests of callers for the store's thread, and its reports for them, under
// one lock that nobody holds for long.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/event_fd.h"
#include "kv/tiers/page_store.h"
#include "store/circuit_breaker.h"
#include "store/remote/remote_options.h"
#include "store/remote/store_request.h"

namespace pagoda::store {

// Servers of a store, for its figures.
struct NodeCounts {
  std::uint64_t nodes = 0;
  std::uint64_t nodes_on = 0;
  std::uint64_t redirections = 0;
};

// A caller waits for a Job: a removal, or only that the writes before it are over.
struct Job {
  enum class Kind : std::uint8_t { kRemove, kRemoveAll, kFlush };
  Kind kind = Kind::kFlush;
  kv::OwnerTag owner = {};
  std::uint64_t number = 0;  // writes with lower numbers come first
  std::optional<Result<kv::Removal>> result = {};
};

class RemoteMailbox {
 public:
  // The mailbox is off until turn_on().
  explicit RemoteMailbox(const RemoteOptions& options)
      : options_(options), writing_(options.write_refusals_max, options.write_retry_ns) {
    stats_.is_on = false;
    stats_.is_ready = false;
  }

  // Callers. False: the store is off, or too many requests wait.
  bool put(StoreRequest request);
  void put_report(const kv::StoreReport& report);
  bool is_on() const;
  bool takes_writes() const;
  void cancel(std::span<const kv::StoreTicket> tickets);
  void poll(std::vector<kv::StoreReport>& reports);
  void on_report(std::function<void()> notify);
  Result<kv::Removal> wait_for(Job job, std::int64_t timeout_ns);
  Status await_on(std::int64_t timeout_ns);
  kv::StoreStats stats() const;
  void stop();

  // The store's thread
  struct Inbox {
    std::vector<StoreRequest> requests;
    std::vector<kv::StoreTicket> cancelled;
    std::vector<std::shared_ptr<Job>> jobs;
  };
  Inbox take();
  void report(const StoreRequest& request);
  void end(const std::shared_ptr<Job>& job, Result<kv::Removal> result);
  void turn_on();
  // `condition` says why, for people. Returns the waiting requests; nothing is put afterwards.
  Inbox turn_off(const std::string& condition);
  // `condition`: why nodes are off, or empty.
  void show_nodes(const NodeCounts& counts, const std::string& condition);
  // Notifies if there is a report since the last time.
  void notify_if_due();
  bool is_stopping() const;
  EventFd& wakeup() { return wakeup_; }

 private:
  std::size_t& queued(const StoreRequest& request);
  static std::size_t weight(const StoreRequest& request);

  const RemoteOptions& options_;
  EventFd wakeup_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Inbox inbox_;
  std::vector<kv::StoreReport> reports_;
  bool notify_due_ = false;
  std::function<void()> notify_;
  kv::StoreStats stats_;
  std::string node_condition_;
  CircuitBreaker writing_;
  std::size_t reads_queued_ = 0;
  std::size_t write_bytes_queued_ = 0;
  std::uint64_t next_number_ = 1;
  bool stopping_ = false;
};

}  // namespace pagoda::store

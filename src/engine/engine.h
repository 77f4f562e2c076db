// Engine is the front door: requests come from any thread, output goes through their sinks.
//
// One thread owns the core, the scheduler and the cache. Other threads leave messages in an inbox,
// which the engine's thread reads between steps. With nothing to do that thread sleeps. Dropping
// the engine cancels what runs; drain() lets it finish first.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "base/seq_lock.h"
#include "engine/core.h"
#include "engine/snapshot.h"
#include "engine/tenant_removals.h"
#include "kv/tiers/page_lease.h"

namespace pagoda::engine {

struct NamedTenant {
  std::string name;
  TenantLimits limits;
};

struct TierStats {
  std::string name;
  kv::StoreStats stats;
  bool takes_writes = true;  // false: stats.condition says why not
};

struct EngineOptions {
  CoreOptions core;
  std::vector<NamedTenant> tenants;  // TenantId 1, 2, …; 0 has no limits
  // Called on the engine's thread after each round of messages and a step: sinks may have gathered
  // output to send.
  std::function<void()> after_step = {};
};

class Engine final : public kv::PageLessor {
 public:
  // All arguments must outlive the engine. The cache belongs to the engine's thread from here on.
  Engine(const EngineOptions& options, kv::Cache& cache, Runner& runner, const Clock& clock);
  ~Engine() override;

  // An error names the field that is out of its range; everything else comes through the sink.
  Result<RequestId> submit(Request request, std::shared_ptr<ReplySink> sink);
  // kStop: the client has all it wanted. Never throws: where memory is short, the call waits for
  // some.
  void cancel(RequestId id, FinishReason reason = FinishReason::kCancelled);
  // Changes limits and adds tenants for the requests that are submitted after the call. The list
  // extends that of the options: no tenant leaves the list or changes its index.
  void set_tenants(std::vector<NamedTenant> tenants);
  // Says that a sink which wanted no more wants more again (ReplySink::wants_more).
  void wake();
  // Runs the task on the engine's thread between steps.
  void post(std::function<void(kv::Cache&)> task);

  // Ends a client's session (Core::close_session). `done` is called on the engine's thread.
  void close_session(SessionName name, std::function<void(Result<std::uint64_t> blocks)> done);
  // Returns the last prompt of a session; nullptr where none is remembered. Any thread.
  std::shared_ptr<const SessionPrompt> session_prompt(const SessionName& name) const {
    return core_.session_prompts().find(name);
  }
  // Empties the cache, for one tenant or for all (Core::reset).
  void reset(std::optional<TenantId> tenant);

  // Returns whether nothing runs or waits, and nobody asked for anything. Any thread.
  bool is_idle() const;

  // Takes no more requests; true once none is left, false after `timeout`.
  bool drain(std::chrono::nanoseconds timeout);

  // Gives pages their address outside the pool: tiers are read from now on, and written once the
  // address is sure.
  void set_space(const kv::SpaceId& space, bool is_sure = true);
  // Says that the address is wrong or cannot be had (Core::drop_space).
  void drop_space(const std::string& why);
  // After drain(): writes blocks that are worth keeping to the tiers, most recently used first.
  // False when `timeout` was not enough for all of them.
  bool offload_all(std::chrono::nanoseconds timeout);

  void lease(std::vector<kv::PageKey> keys,
             std::function<void(std::vector<kv::LeasedPage>)> done) override;
  void end_leases(std::vector<kv::BlockId> blocks) override;

  // Returns the tiers outside the pool, nearest first. Any thread.
  std::vector<TierStats> tiers() const;
  // Removes a tenant's private pages from the pool and every tier. `done` is called with the
  // outcome on the engine's thread: from then on none of the pages is found or can come back.
  // `done` is not called when the engine is dropped before.
  void remove_tenant(TenantId tenant, TenantRemovals::Done done);

  // Reading these costs the engine's thread nothing.
  Snapshot snapshot() const { return snapshot_.read(); }
  const Distributions& distributions() const { return core_.distributions(); }
  // Returns stats by TenantId; at most kTenantsEveryNs old while something runs.
  std::vector<TenantStats> tenants() const;
  std::string tenant_name(TenantId id) const;
  // Returns the grants of retained blocks that have not ended, soonest to end first; ends are by
  // now_ns().
  std::vector<kv::GrantStats> retained() const;
  std::uint64_t retain_blocks_max() const { return retain_blocks_max_; }
  // Returns what other cache sizes and policies would have given: at most a second old, and current
  // while idle.
  kv::CurveStats curve() const { return curve_.read(); }
  std::int64_t now_ns() const { return clock_.now_ns(); }
  const RequestLimits& limits() const { return options_.core.limits; }

 private:
  struct Submission {
    RequestId id;
    Request request;
    std::shared_ptr<ReplySink> sink;
  };
  struct Cancellation {
    RequestId id;
    FinishReason reason;
  };
  using Order = std::function<void(Core&)>;
  using Message = std::variant<Submission, Cancellation, std::function<void(kv::Cache&)>,
                               std::vector<NamedTenant>, Order>;
  static constexpr std::int64_t kTenantsEveryNs = 100'000'000;
  // Requests that are only explained take a lookup each, and everybody's step waits for those.
  static constexpr std::size_t kQuestionsARound = 8;

  void leave(Message&& message);
  void put(Message&& message);  // called under the waker's mutex
  void run();
  // False when these messages were the last: the engine is being dropped.
  bool take_messages();
  void handle(Message& message);
  void answer_questions();
  Result<TenantLimits> limits_of(TenantId tenant);
  void take_tenants(const std::vector<NamedTenant>& tenants);
  void publish();
  void publish_retained();
  void publish_curve();
  void publish_tenants();  // called under tenants_mutex_
  void wait_for_pages();
  // True: the device can be lost while nothing runs, and find_loss() looks for that.
  bool watches_device() const { return runner_.may_vanish() && !core_.is_lost(); }
  void find_loss();
  void sleep();

  // Wakes the engine's thread. Stores share ownership: they may notify after the engine is gone.
  struct Waker {
    std::mutex mutex;
    std::condition_variable wake;
    bool pages_came = false;  // under mutex
  };

  EngineOptions options_;
  const std::shared_ptr<Waker> waker_ = std::make_shared<Waker>();
  kv::Cache& cache_;
  Runner& runner_;
  const Clock& clock_;
  const std::uint64_t retain_blocks_max_;
  sched::TenantTable tenants_;
  Core core_;
  std::atomic<std::uint64_t> next_id_{1};
  SeqLock<Snapshot> snapshot_;

  // CurveFeed::blocks_asked() of the published curve, and when it was published.
  std::uint64_t curve_asked_ = UINT64_MAX;
  std::int64_t curve_published_ns_ = 0;
  SeqLock<kv::CurveStats> curve_;

  std::uint64_t retained_version_ = 0;    // version that is published
  mutable std::mutex retained_mutex_;     // taken by the engine's thread when something changed
  std::vector<kv::GrantStats> retained_;  // under retained_mutex_

  std::int64_t tenants_published_ns_ = 0;
  mutable std::mutex tenants_mutex_;       // a step only tries to take it
  std::vector<TenantStats> tenant_stats_;  // [tenant]; others read it under tenants_mutex_

  // The waker's mutex guards these:
  std::condition_variable finished_;  // notifies drain()
  std::vector<Message> inbox_;
  std::vector<TenantLimits> tenant_limits_;  // [tenant]
  bool draining_ = false;
  bool stopping_ = false;
  bool idle_ = false;

  std::atomic<bool> has_messages_{false};  // spares the engine's thread the lock
  std::vector<Message> messages_;          // messages taken from the inbox
  std::deque<Submission> questions_;       // requests that are only explained, in their order
  TenantRemovals removals_;
  std::thread thread_;  // the last member: starts when all others exist
};

}  // namespace pagoda::engine

// The engine's front door: requests from any thread, answers through their sinks.
//
// One thread owns the core, the scheduler and the cache. Others leave messages in an inbox, which
// it looks into between steps. With nothing to do it sleeps. Dropping the engine cancels what runs;
// drain() lets it finish first.
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

namespace pagoda::engine {

struct NamedTenant {
  std::string name;
  TenantLimits limits;
};

struct TierStats {
  std::string name;
  kv::StoreStats stats;
  bool takes_writes = true;  // stats.condition says why not
};

struct EngineOptions {
  CoreOptions core;
  std::vector<NamedTenant> tenants;  // TenantId 1, 2, …; 0 has no limits
  // Called on the engine's thread after each round of messages and a step: sinks may have gathered
  // what they send.
  std::function<void()> after_step = {};
};

class Engine {
 public:
  // All must outlive the engine. The cache belongs to the engine's thread from here on.
  Engine(const EngineOptions& options, kv::Cache& cache, Runner& runner, const Clock& clock);
  ~Engine();

  // An error names the field that is out of its range; everything else comes through the sink.
  Result<RequestId> submit(Request request, std::shared_ptr<ReplySink> sink);
  // kStop: the asker has all it wanted. Never throws: where there is no memory it waits for some.
  void cancel(RequestId id, FinishReason reason = FinishReason::kCancelled);
  // Changes limits and adds tenants for the requests that are submitted after. The list goes on
  // where that of the options ends: nobody leaves it and nobody changes places.
  void set_tenants(std::vector<NamedTenant> tenants);
  // A sink that wanted no more wants more again (ReplySink::wants_more).
  void wake();
  // Runs on the engine's thread between steps.
  void post(std::function<void(kv::Cache&)> task);

  // No more requests are taken; true once none is left, false after `timeout`.
  bool drain(std::chrono::nanoseconds timeout);

  // What pages are addressed by outside is known: tiers are read from now on, and written once it
  // is sure.
  void set_space(const kv::SpaceId& space, bool is_sure = true);
  // It is wrong, or not to be had (Core::drop_space).
  void drop_space(const std::string& why);
  // After drain(): writes what is worth keeping to the tiers, most recently used first. False when
  // `timeout` was not enough for all of it.
  bool offload_all(std::chrono::nanoseconds timeout);

  // The tiers outside the pool, nearest first. Any thread.
  std::vector<TierStats> tiers() const;
  // Removes what is private to a tenant, from the pool and every tier. `done` is told what went, on
  // the engine's thread: from then on nothing of it is found or can come back. It is not told when
  // the engine is dropped before.
  void remove_tenant(TenantId tenant, TenantRemovals::Done done);

  // Reading these costs the engine's thread nothing.
  Snapshot snapshot() const { return snapshot_.read(); }
  const Distributions& distributions() const { return core_.distributions(); }
  // By TenantId; at most kTenantsEveryNs old while something runs.
  std::vector<TenantStats> tenants() const;
  std::string tenant_name(TenantId id) const;
  // What requests had retained and has not ended, soonest to end first; ends are by now_ns().
  std::vector<kv::GrantStats> retained() const;
  std::uint64_t retain_blocks_max() const { return retain_blocks_max_; }
  // What other sizes and policies would have given: at most a second old, and of now while idle.
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

  void leave(Message message);
  void put(Message message);  // under the waker's mutex
  void run();
  // False when these were the last: the engine is being dropped.
  bool take_messages();
  void handle(Message& message);
  Result<TenantLimits> limits_of(TenantId tenant);
  void take_tenants(const std::vector<NamedTenant>& tenants);
  void publish();
  void publish_retained();
  void publish_curve();
  void publish_tenants();  // under tenants_mutex_
  void wait_for_pages();
  void sleep();

  // Wakes the engine's thread. Stores hold it too: they ring also when the engine is gone.
  struct Waker {
    std::mutex mutex;
    std::condition_variable wake;
    bool pages_came = false;  // under mutex
  };

  EngineOptions options_;
  const std::shared_ptr<Waker> waker_ = std::make_shared<Waker>();
  kv::Cache& cache_;
  const Clock& clock_;
  const std::uint64_t retain_blocks_max_;
  sched::TenantTable tenants_;
  Core core_;
  std::atomic<std::uint64_t> next_id_{1};
  SeqLock<Snapshot> snapshot_;

  std::uint64_t curve_asked_ = UINT64_MAX;  // Cache::blocks_asked() that is published, and when
  std::int64_t curve_published_ns_ = 0;
  SeqLock<kv::CurveStats> curve_;

  std::uint64_t retained_version_ = 0;    // that is published
  mutable std::mutex retained_mutex_;     // taken by the engine's thread when something changed
  std::vector<kv::GrantStats> retained_;  // under retained_mutex_

  std::int64_t tenants_published_ns_ = 0;
  mutable std::mutex tenants_mutex_;       // a step only tries it
  std::vector<TenantStats> tenant_stats_;  // [tenant]; others read it under tenants_mutex_

  // Under the waker's mutex:
  std::condition_variable finished_;  // for drain()
  std::vector<Message> inbox_;
  std::vector<TenantLimits> tenant_limits_;  // [tenant]
  bool draining_ = false;
  bool stopping_ = false;
  bool idle_ = false;

  std::atomic<bool> has_messages_{false};  // spares the engine's thread the lock
  std::vector<Message> messages_;          // taken from the inbox
  TenantRemovals removals_;
  std::thread thread_;  // last: starts when all else stands
};

}  // namespace pagoda::engine

// Who runs next, and what they hold of the cache meanwhile.
//
// One step:  plan() decides and touches nothing; reserve() makes it so: preempts, opens, takes
// blocks; the caller launches the tokens. When the launch is done, begin_collect() names it,
// commit() publishes a task's tokens, append() adds its next token, finish() ends it, end_collect()
// lets go of what the launch used. Launches are collected in order; up to `launches_ahead` more may
// run meanwhile, and a block given up is reusable only after every launch that could touch it has
// been collected.
//
// Thread rule: one thread, the one that owns the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kv/cache.h"
#include "sched/block_demand.h"
#include "sched/options.h"
#include "sched/plan.h"
#include "sched/planner.h"
#include "sched/sequence_task.h"
#include "sched/tenant.h"
#include "sched/waiting_queue.h"

namespace pagoda::sched {

// What is launched together.
struct Step {
  LaunchNumber launch = 0;
  std::vector<ScheduledChunk> chunks;
  std::vector<kv::Copy> copies;  // to be done before the tokens are computed
  std::vector<SequenceTask*> admitted;
  std::int64_t launched_ns = 0;  // noted by who launches
};

class Scheduler {
 public:
  // The cache and the tenants must outlive the scheduler.
  Scheduler(const SchedulerOptions& options, kv::Cache& cache, TenantTable& tenants,
            std::uint32_t launches_ahead = 0);

  const SchedulerOptions& options() const { return options_; }

  void enqueue(SequenceTask& task);

  const Plan& plan();
  // What is to be launched, valid until it is collected; nullptr when no token can be computed.
  Step* reserve(const Plan& plan);

  // Others have published more of a running task's prompt than it has computed: it goes on from
  // there. Does nothing where a launch uses the task.
  void skip_ahead(SequenceTask& task);

  // The oldest launch.
  Step& begin_collect();
  // The tokens of one task are computed: they are published.
  void commit(const ScheduledChunk& chunk);
  void append(SequenceTask& task, TokenId token);
  // Another sequence of the leader's prompt, whose tokens it shares. The prompt is computed.
  void fork(SequenceTask& leader, SequenceTask& follower);
  void finish(SequenceTask& task);
  void end_collect();

  // Why the match is what it is, also by what running tasks are computing. With
  // compute_whole_prompt none of it is used.
  kv::Explanation explain(const kv::CacheScope& scope, std::span<const TokenId> prompt,
                          const kv::Match& match, bool compute_whole_prompt) const;

  // A task whose deadline has passed, to be finished.
  SequenceTask* expired(std::int64_t now_ns) const;
  // Does no launch use the task? Then it may be destroyed once it is finished.
  bool quiet(const SequenceTask& task) const { return task.last_launch <= launches_collected_; }

  // Calls visit(SequenceTask&) for tasks that wait again, once each; for who prepares waiting
  // tasks.
  template <class Visit>
  void take_requeued(Visit&& visit) {
    for (SequenceTask* const task : requeued_) visit(*task);
    requeued_.clear();
  }

  bool has_work() const { return !running_.empty() || !waiting_.empty() || !draining_.empty(); }
  std::uint64_t launches_running() const { return launches_ - launches_collected_; }
  std::span<SequenceTask* const> running() const { return running_; }
  std::size_t tasks_waiting() const { return waiting_.size(); }
  const WaitingQueue& waiting() const { return waiting_; }
  bool lacks_blocks() const {
    return waiting_.by_reason()[static_cast<std::size_t>(WaitReason::kBlocks)] > 0;
  }
  // Nothing runs, and the last plan started and loaded nothing.
  bool stands_still() const { return stands_still_; }
  // Stops the program when an invariant does not hold. Linear. Who brings pages from other tiers or
  // writes them there may hold blocks of its own.
  void check(bool others_hold_blocks = false) const;

 private:
  // What a task that is gone held when it left, kept for launches that run.
  struct PendingClose {
    LaunchNumber launch;
    kv::Sequence sequence;
  };
  struct PendingRelease {
    LaunchNumber launch;
    kv::BlockId block;
  };

  bool blocks_coming() const;
  void note_deferred(const Plan& plan);
  void preempt(SequenceTask& task);
  bool admit(const Admission& admission, Step& step);
  void launch_chunk(Step& step, const ScheduledChunk& chunk);
  void start_running(SequenceTask& task);
  void stop_running(SequenceTask& task);
  void requeue(SequenceTask& task);

  SchedulerOptions options_;
  kv::Cache& cache_;
  TenantTable& tenants_;
  BlockDemand demand_;
  Planner planner_;
  WaitingQueue waiting_;
  std::vector<SequenceTask*> running_;   // by priority, then arrival
  std::vector<SequenceTask*> draining_;  // preempted, with launches that run
  std::vector<SequenceTask*> requeued_;  // and not asked for since
  std::vector<PendingClose> pending_closes_;
  std::vector<PendingRelease> pending_releases_;
  std::vector<kv::BlockId> duplicates_;  // of one commit
  std::set<std::pair<std::int64_t, SequenceTask*>> deadlines_;
  std::vector<ClassUse> classes_;
  std::vector<Step> steps_;  // ring: [launch % size]
  std::uint64_t sequences_claimed_ = 0;
  std::uint64_t arrivals_ = 0;
  std::uint64_t step_count_ = 0;
  bool stands_still_ = false;
  LaunchNumber launches_ = 0;
  LaunchNumber launches_collected_ = 0;
};

}  // namespace pagoda::sched

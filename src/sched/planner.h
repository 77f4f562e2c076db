// Decides a step: a pure function of the tasks, the queue, the tenants and the cache.
//
//   1. Running tasks that need one token (they decode), by priority and arrival.
//   2. Running tasks that lag further behind (they prefill), in chunks of what is left and of what
//      their tenant may have of it (token_shares.h).
//   3. Waiting tasks, as long as sequences, tokens and blocks are left.
//
// Where a running task lacks blocks, the cheapest one that has no tokens yet in this plan is
// preempted: lower priority first, then of the tenant that holds most for its weight, then the
// fewest computed tokens, then the most work left, then the latest. Waiting tasks never preempt. A
// task is admitted when all its known tokens fit beside what is promised to those that still
// prefill. For every tenant that is active and has nothing running a slot is kept, and room for it,
// as long as that is a quarter of the slots or less.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/cache.h"
#include "sched/block_demand.h"
#include "sched/options.h"
#include "sched/plan.h"
#include "sched/sequence_task.h"
#include "sched/token_shares.h"
#include "sched/waiting_queue.h"

namespace pagoda::sched {

// What a length class has of the running tasks.
struct ClassUse {
  std::uint64_t sequences = 0;
  std::uint64_t blocks = 0;  // at the peak of what was known of its tasks when they were admitted

  bool operator==(const ClassUse&) const = default;
};

// All that a plan depends on.
struct SchedulerView {
  std::span<SequenceTask* const> running;  // by priority, then arrival
  const WaitingQueue& waiting;
  const TenantTable& tenants;
  const kv::Cache& cache;
  std::span<const ClassUse> classes;
  std::uint64_t sequences_claimed = 0;
  bool blocks_coming = false;  // tasks that are gone still hold some, for launches that run
  LaunchNumber launches_collected = 0;
  std::uint64_t step = 0;
};

class Planner {
 public:
  // The options must outlive the planner.
  Planner(const SchedulerOptions& options, const BlockDemand& demand)
      : options_(options), demand_(demand) {}

  // Valid until the next call.
  const Plan& plan(const SchedulerView& view);

 private:
  enum class Decision : std::uint8_t { kNone, kScheduled, kPreempted };

  void plan_decodes(const SchedulerView& now);
  void share_tokens(const SchedulerView& now);
  bool is_active(const SchedulerView& now, TenantId id) const;
  void plan_prefills(const SchedulerView& now);
  // False when there are no blocks for them.
  bool schedule_tokens(const SchedulerView& now, std::size_t index, std::uint64_t tokens);
  bool find_blocks(const SchedulerView& now, std::size_t needy, std::uint64_t blocks);
  std::optional<std::size_t> preemption_victim(const SchedulerView& now) const;
  std::uint64_t chunk(std::uint64_t tokens_behind, bool contested) const;

  // planner_admission.cc
  void plan_admissions(const SchedulerView& now);
  void walk_waiting(const SchedulerView& now);
  std::optional<Deferred> judge(const SchedulerView& now, SequenceTask& task,
                                std::uint64_t& tokens_behind);
  std::optional<WaitReason> reached_limit(const SchedulerView& now, const SequenceTask& task) const;
  bool has_a_slot(const SchedulerView& now, TenantId id) const;
  std::uint64_t slots_kept(const SchedulerView& now, TenantId id) const;
  bool prefix_in_work(const SchedulerView& now, const SequenceTask& task,
                      std::uint64_t tokens_matched) const;
  std::uint64_t blocks_to_run(const SchedulerView& now, const SequenceTask& task,
                              const kv::Match& match) const;
  std::uint64_t blocks_set_aside(const SchedulerView& now) const;
  void count_admitted(const SequenceTask& task, std::uint64_t blocks);
  bool must_not_pass() const;

  const SchedulerOptions& options_;
  BlockDemand demand_;
  Plan plan_;

  // Of the plan in the making.
  std::vector<Decision> decisions_;    // [running]
  std::vector<std::size_t> prefills_;  // of running
  std::uint64_t token_budget_ = 0;
  std::uint64_t blocks_left_ = 0;
  std::uint64_t sequences_left_ = 0;
  std::uint64_t blocks_judged_ = 0;  // what the last judged task needs
  std::vector<ClassUse> classes_;
  std::vector<std::uint64_t> sequences_admitted_;  // [tenant], on this walk
  std::vector<std::uint64_t> kv_tokens_admitted_;  // [tenant], on this walk
  TokenShares shares_;
  WaitingQueue::Walk walk_;
};

}  // namespace pagoda::sched

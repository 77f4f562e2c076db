// Decides a step: a pure function of the tasks, the queue, the tenants and the cache.
//
//   1. Running tasks that need one row (they decode), by priority and arrival.
//   2. Running tasks that lag further behind (they prefill), in chunks of what is left and of what
//      their tenant may have of it (row_shares.h).
//   3. Waiting tasks, as long as sequences, rows and blocks are left.
//
// Where a running task lacks blocks, the cheapest one that has no rows yet in this plan is
// preempted: lower priority first, then of the tenant that holds most for its weight, then the
// fewest computed tokens, then the most work left, then the latest. Waiting tasks never preempt. A
// task is admitted when all its known tokens fit beside what is promised to those that still
// prefill. For every tenant that is about and has nothing running a place is kept, and room for it,
// as long as that is a quarter of the places or less.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/cache.h"
#include "sched/footprint.h"
#include "sched/options.h"
#include "sched/plan.h"
#include "sched/row_shares.h"
#include "sched/task.h"
#include "sched/waiting_queue.h"

namespace pagoda::sched {

// What a length class has of the running tasks.
struct ClassUse {
  std::uint64_t sequences = 0;
  std::uint64_t blocks = 0;  // at the peak of what was known of its tasks when they were admitted

  bool operator==(const ClassUse&) const = default;
};

// All that a plan depends on.
struct Situation {
  std::span<Task* const> running;  // by priority, then arrival
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
  Planner(const SchedulerOptions& options, const Footprint& footprint)
      : options_(options), footprint_(footprint) {}

  // Valid until the next call.
  const Plan& plan(const Situation& situation);

 private:
  enum class Fate : std::uint8_t { kOpen, kRows, kPreempted };

  void plan_decodes(const Situation& now);
  void share_rows(const Situation& now);
  bool is_about(const Situation& now, TenantId id) const;
  void plan_prefills(const Situation& now);
  // False when there are no blocks for them.
  bool give_rows(const Situation& now, std::size_t index, std::uint64_t rows);
  bool find_blocks(const Situation& now, std::size_t needy, std::uint64_t blocks);
  std::optional<std::size_t> cheapest_to_lose(const Situation& now) const;
  std::uint64_t chunk(std::uint64_t rows_behind, bool contested) const;

  // planner_admission.cc
  void plan_admissions(const Situation& now);
  void walk_waiting(const Situation& now);
  std::optional<Unfit> judge(const Situation& now, Task& task, std::uint64_t& rows_behind);
  std::optional<WaitReason> reached_limit(const Situation& now, const Task& task) const;
  bool has_a_place(const Situation& now, TenantId id) const;
  std::uint64_t places_kept(const Situation& now, TenantId asker) const;
  bool prefix_in_work(const Situation& now, const Task& task, std::uint64_t tokens_matched) const;
  std::uint64_t blocks_to_run(const Situation& now, const Task& task, const kv::Match& match) const;
  std::uint64_t blocks_set_aside(const Situation& now) const;
  void count_admitted(const Task& task, std::uint64_t blocks);
  bool someone_is_next() const;

  const SchedulerOptions& options_;
  Footprint footprint_;
  Plan plan_;

  // Of the plan in the making.
  std::vector<Fate> fates_;            // [running]
  std::vector<std::size_t> prefills_;  // of running
  std::uint64_t rows_left_ = 0;
  std::uint64_t blocks_left_ = 0;
  std::uint64_t sequences_left_ = 0;
  std::uint64_t blocks_judged_ = 0;  // what the last judged task needs
  std::vector<ClassUse> classes_;
  std::vector<std::uint64_t> answers_admitted_;    // [tenant], on this walk
  std::vector<std::uint64_t> kv_tokens_admitted_;  // [tenant], on this walk
  RowShares shares_;
  WaitingQueue::Walk walk_;
};

}  // namespace pagoda::sched

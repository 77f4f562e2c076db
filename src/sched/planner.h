// The planner decides which tokens a step computes (continuous batching with chunked prefill). The
// plan is a pure function of the running sequences, the waiting queue, the tenants and the cache.
//
//   1. Running sequences that need one token decode, by priority and arrival. While several tenants
//      run, a tenant's sequences with costly grammars take turns.
//   2. Running sequences that lag further behind prefill in chunks, within the token budget that is
//      left, the share of their tenant (token_shares.h) and, beside sequences that decode, the time
//      that an ITL target leaves (prompt_time.h).
//   3. Waiting sequences are admitted as long as slots, tokens and blocks are left.
//
// Where a running sequence lacks blocks, the planner preempts the cheapest sequence that has no
// tokens in this plan yet: the less urgent priority first, then the tenant that holds most KV
// tokens for its weight, then the fewest computed tokens, then the most tokens left to generate,
// then the latest arrival. A waiting sequence is admitted when all its known tokens fit beside the
// blocks promised to running sequences. For every active tenant without a running sequence the
// planner keeps a slot and room free, up to a quarter of the slots.
//
// Before any of this the planner preempts for those who wait (planner_slots.cc): sequences whose
// readers do not keep up, and, where a tenant of which nothing runs finds no slot or no blocks,
// sequences of the tenants that have most slots for their weight.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/cache.h"
#include "sched/block_demand.h"
#include "sched/options.h"
#include "sched/plan.h"
#include "sched/prompt_time.h"
#include "sched/sequence_task.h"
#include "sched/token_shares.h"
#include "sched/waiting_queue.h"

namespace pagoda::sched {

// Counts what the running sequences of a context class use.
struct ClassUse {
  std::uint64_t sequences = 0;
  std::uint64_t blocks = 0;  // peak of the tokens known at admission

  bool operator==(const ClassUse&) const = default;
};

// Holds everything that a plan depends on.
struct SchedulerView {
  std::span<SequenceTask* const> running;  // by priority, then arrival
  const WaitingQueue& waiting;
  const TenantTable& tenants;
  const kv::Cache& cache;
  std::span<const ClassUse> classes;
  std::uint64_t sequences_claimed = 0;
  bool blocks_coming = false;  // running launches hold blocks that will be free afterwards
  LaunchNumber launches_collected = 0;
  std::uint64_t step = 0;
  ItlLimit itl = {};
};

class Planner {
 public:
  // The options must outlive the planner.
  Planner(const SchedulerOptions& options, const BlockDemand& demand)
      : options_(options), demand_(demand) {}

  // The plan is valid until the next call.
  const Plan& plan(const SchedulerView& view);

 private:
  enum class Decision : std::uint8_t { kNone, kScheduled, kPreempted };

  // These functions are in planner_slots.cc.
  void plan_preemptions(const SchedulerView& now);
  void preempt_paused(const SchedulerView& now);
  void make_room_for_a_tenant(const SchedulerView& now);
  void count_slots(const SchedulerView& now);
  std::uint64_t slots_left(const SchedulerView& now) const;
  std::uint64_t fair_slots(const SchedulerView& now) const;
  bool lacks_room(const SchedulerView& now, const SequenceTask& task) const;
  bool lacks_blocks(const SchedulerView& now, const SequenceTask& task) const;
  bool find_victims(const SchedulerView& now, const SequenceTask& first);
  std::optional<std::size_t> victim_of_most_slots(const SchedulerView& now,
                                                  const SequenceTask& first) const;
  void preempt(const SchedulerView& now, std::size_t index);

  void plan_decodes(const SchedulerView& now);
  void share_grammar_work(const SchedulerView& now);
  static bool several_tenants_run(const SchedulerView& now);
  void limit_time(const SchedulerView& now);
  void share_tokens(const SchedulerView& now);
  std::uint32_t tenants_active(const SchedulerView& now) const;
  bool is_active(const SchedulerView& now, TenantId id) const;
  void plan_prefills(const SchedulerView& now);
  // Returns false when the tokens' blocks cannot be had in this step.
  bool schedule_tokens(const SchedulerView& now, std::size_t index, std::uint64_t tokens);
  bool find_blocks(const SchedulerView& now, std::size_t needy, std::uint64_t blocks);
  std::optional<std::size_t> preemption_victim(const SchedulerView& now) const;
  bool is_cheaper(const SchedulerView& now, const SequenceTask& a, const SequenceTask& b) const;
  static bool is_quiet(const SchedulerView& now, const SequenceTask& task) {
    return task.last_launch <= now.launches_collected;
  }
  std::uint64_t chunk(std::uint64_t tokens_behind, bool contested) const;
  std::uint64_t timed_chunk(const SequenceTask& task, std::uint64_t first,
                            std::uint64_t tokens) const;
  void take_prompt_tokens(const SequenceTask& task, std::uint64_t first, std::uint64_t tokens);

  // These functions are in planner_admission.cc.
  void plan_admissions(const SchedulerView& now);
  void walk_waiting(const SchedulerView& now);
  std::optional<Deferred> judge(const SchedulerView& now, SequenceTask& task,
                                std::uint64_t& tokens_behind);
  std::optional<WaitReason> reached_limit(const SchedulerView& now, const SequenceTask& task) const;
  bool has_a_slot(const SchedulerView& now, TenantId id) const;
  std::uint64_t slots_kept(const SchedulerView& now, TenantId id) const;
  bool prefix_in_work(const SchedulerView& now, const SequenceTask& task,
                      std::uint64_t tokens_matched) const;
  std::uint64_t blocks_at_peak(const SequenceTask& task, std::uint64_t tokens,
                               std::uint64_t computed = 0) const;
  std::uint64_t blocks_to_run(const SchedulerView& now, const SequenceTask& task,
                              const kv::Match& match) const;
  std::uint64_t blocks_promised(const SequenceTask& task) const;
  std::uint64_t blocks_set_aside(const SchedulerView& now) const;
  void count_admitted(const SequenceTask& task, std::uint64_t blocks);
  bool must_not_pass() const;

  const SchedulerOptions& options_;
  BlockDemand demand_;
  Plan plan_;

  // State of the plan that is being made.
  std::vector<Decision> decisions_;    // [running]
  std::vector<std::size_t> prefills_;  // indices into running
  std::vector<bool> yields_;           // [running]: another costly grammar of its tenant goes first
  std::vector<std::size_t> costly_;    // indices into running: those with costly grammars
  std::vector<std::uint64_t> grammar_work_taken_;  // [tenant]
  std::uint64_t token_budget_ = 0;
  std::uint64_t untimed_budget_ = 0;  // the same, where no time bounds it
  PromptTime time_;                   // of the prompt tokens
  std::uint64_t blocks_left_ = 0;
  std::uint64_t slots_freed_ = 0;          // by preemptions of this plan
  std::vector<std::uint64_t> slots_held_;  // [tenant], by sequences that go on; empty: not counted
  std::vector<const SequenceTask*> newcomers_;  // first sequences of tenants that lack room
  std::vector<std::size_t> victims_;            // indices into running
  TenantId promised_to_;                        // slots_promised_ are for this tenant alone
  std::uint64_t slots_promised_ = 0;
  bool lacks_blocks_ = false;  // a running sequence waits for blocks
  std::uint64_t sequences_left_ = 0;
  std::uint64_t blocks_judged_ = 0;  // blocks that the last judged sequence needs
  std::vector<ClassUse> classes_;
  std::vector<std::uint64_t> sequences_admitted_;  // [tenant], on this walk
  std::vector<std::uint64_t> kv_tokens_admitted_;  // [tenant], on this walk
  TokenShares shares_;
  WaitingQueue::Walk walk_;
};

}  // namespace pagoda::sched

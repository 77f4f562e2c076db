// The scheduler decides which sequences run in the next step (continuous batching), and which KV
// blocks the sequences hold meanwhile.
//
// In one step, plan() decides and changes no sequence; reserve() executes the plan: preempts,
// admits and allocates blocks; the caller launches the tokens. When the launch is done,
// begin_collect() returns its step, commit() publishes the computed tokens of a sequence, append()
// adds the sampled token, finish() ends a sequence, and end_collect() releases what the launch
// used. Launches are collected in order; up to `launches_ahead` more may run meanwhile. A released
// block is reusable only after every launch that could touch the block has been collected.
//
// Only the thread that owns the cache may call the scheduler.
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
#include "sched/step_time.h"
#include "sched/tenant.h"
#include "sched/waiting_queue.h"

namespace pagoda::sched {

// A Step is the batch of one launch.
struct Step {
  LaunchNumber launch = 0;
  std::vector<ScheduledChunk> chunks;
  std::vector<kv::Copy> copies;  // copied before the tokens are computed
  std::vector<SequenceTask*> admitted;
  std::int64_t launched_ns = 0;  // set by the caller that launches
  // Set by Scheduler::predict().
  StepWork work;
  double predicted_s = 0;  // 0: nothing was measured yet
};

class Scheduler {
 public:
  // The cache and the tenants must outlive the scheduler.
  Scheduler(const SchedulerOptions& options, kv::Cache& cache, TenantTable& tenants,
            std::uint32_t launches_ahead = 0);

  const SchedulerOptions& options() const { return options_; }

  void enqueue(SequenceTask& task);

  const Plan& plan();
  // Returns the step to launch, valid until the step is collected; nullptr when no token can be
  // computed.
  Step* reserve(const Plan& plan);

  // Returns how many draft tokens have room behind a chunk of the step that ends with its
  // sequence's last token: in blocks that the sequence holds and, if `may_take_blocks`, in free
  // ones. Nothing is evicted or preempted for draft tokens.
  std::uint64_t draft_room(const ScheduledChunk& chunk, bool may_take_blocks) const;
  // Adds up to `tokens` draft tokens to the chunk, and returns how many had room. The tenant pays
  // for them.
  std::uint32_t add_drafts(ScheduledChunk& chunk, std::uint32_t tokens, bool may_take_blocks);

  // Predicts how long the step takes, draft tokens included. Call before it is launched.
  void predict(Step& step) const;
  // The step took so many seconds; those of the next are predicted by it.
  void note_time(const Step& step, double seconds) { step_time_.note(step.work, seconds); }
  const StepCosts& step_costs() const { return step_time_.costs(); }

  // Lets a running sequence reuse prompt blocks that other sequences have published since its
  // admission, instead of computing them. Does nothing while a launch uses the sequence.
  void skip_ahead(SequenceTask& task);

  // Returns the step of the oldest launch that is not collected.
  Step& begin_collect();
  // Publishes the computed tokens of one chunk to the cache.
  void commit(const ScheduledChunk& chunk);
  void append(SequenceTask& task, TokenId token);
  // Says that a draft token is the sequence's own, so that the row behind it samples a token, too:
  // commit() and append() follow.
  void accept_draft(SequenceTask& task);
  // Ends the draft of a chunk that is collected. Blocks that hold none but draft tokens that were
  // not accepted are free again.
  void end_drafts(SequenceTask& task);
  // Starts `follower`, another sequence of the leader's request, on the prompt's KV blocks. The
  // leader has computed the prompt.
  void fork(SequenceTask& leader, SequenceTask& follower);
  void finish(SequenceTask& task);
  void end_collect();

  // Explains why no more of the prompt is cached, also by prefixes that running sequences are
  // computing. With compute_whole_prompt no cached token is used.
  kv::Explanation explain(const kv::CacheScope& scope, std::span<const TokenId> prompt,
                          const kv::Match& match, bool compute_whole_prompt) const;
  // Returns how many prompt tokens are to be computed before those of a request that came now with
  // this priority: an upper bound, since its tenant may have its turn earlier. The cache is asked
  // once a plan, whoever asks how often.
  std::uint64_t tokens_before(std::int32_t priority);
  // Counts the lookups in the cache that tokens_before() made.
  std::uint64_t estimate_lookups() const { return estimate_lookups_; }

  // Returns a sequence whose deadline has passed, for the caller to finish; nullptr: none has.
  SequenceTask* expired(std::int64_t now_ns) const;
  // Returns true when no running launch uses the sequence. A finished and quiet sequence may be
  // destroyed.
  bool quiet(const SequenceTask& task) const { return task.last_launch <= launches_collected_; }

  // Sequences that were preempted while they were paused. They do not wait for anything of the
  // scheduler's: the owner resumes them when their readers go on.
  std::span<SequenceTask* const> parked() const { return parked_; }
  void resume(SequenceTask& task);

  // Calls visit(SequenceTask&) once for each sequence that was requeued after a preemption, so that
  // the caller can prepare the sequence for its wait (loads from other tiers).
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
  // Returns true when nothing runs and the last plan admitted and loaded nothing.
  bool stands_still() const { return stands_still_; }
  // Stops the program when an invariant does not hold. Linear. `others_hold_blocks`: page loads
  // from other tiers or stores to them may hold blocks too.
  void check(bool others_hold_blocks = false) const;

 private:
  // A PendingClose keeps a stopped sequence's blocks until `launch` is collected; a PendingRelease
  // keeps one duplicate block.
  struct PendingClose {
    LaunchNumber launch;
    kv::Sequence sequence;
  };
  struct PendingRelease {
    LaunchNumber launch;
    kv::BlockId block;
  };

  // Prompt tokens that are to be computed for a sequence.
  struct QueuedTokens {
    std::int32_t priority;
    std::uint64_t tokens;
  };

  bool blocks_coming() const;
  void list_queued();
  void note_deferred(const Plan& plan);
  void preempt(SequenceTask& task);
  bool admit(const Admission& admission, Step& step);
  void launch_chunk(Step& step, const ScheduledChunk& chunk);
  void start_running(SequenceTask& task);
  void stop_running(SequenceTask& task);
  void requeue(SequenceTask& task);
  void wait(SequenceTask& task);
  std::uint64_t& waiting_count(const SequenceTask& task);

  SchedulerOptions options_;
  kv::Cache& cache_;
  TenantTable& tenants_;
  BlockDemand demand_;
  Planner planner_;
  StepTime step_time_;
  WaitingQueue waiting_;
  std::vector<SequenceTask*> running_;   // by priority, then arrival
  std::vector<SequenceTask*> draining_;  // preempted sequences that running launches use
  std::vector<SequenceTask*> parked_;    // preempted and paused
  std::vector<SequenceTask*> requeued_;  // requeued since the last take_requeued()
  std::vector<PendingClose> pending_closes_;
  std::vector<PendingRelease> pending_releases_;
  std::vector<kv::BlockId> duplicates_;  // duplicate blocks of one commit
  std::vector<QueuedTokens> queued_;     // of running and waiting sequences, where is_listed_
  bool is_listed_ = false;               // since the last plan, arrival and end
  std::uint64_t estimate_lookups_ = 0;
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

// Collection: the scheduler takes the results of a launch that is done.
#include <algorithm>

#include "base/assert.h"
#include "sched/scheduler.h"

namespace pagoda::sched {

Step& Scheduler::begin_collect() {
  ASSERT(launches_running() > 0, "a launch runs");
  return steps_[(launches_collected_ + 1) % steps_.size()];
}

void Scheduler::commit(const ScheduledChunk& chunk) {
  SequenceTask& task = *chunk.task;
  if (task.state == TaskState::kFinished) return;  // tokens past the end are not published
  const auto tokens = std::span<const TokenId>(task.tokens).subspan(chunk.first, chunk.tokens);
  cache_.commit(*task.sequence, tokens, &duplicates_);
  task.tokens_launched = std::max(task.tokens_launched, chunk.first + chunk.tokens);
  for (const kv::BlockId block : duplicates_)
    pending_releases_.push_back({task.last_launch, block});
  duplicates_.clear();
  if (!task.drops) return;
  for (const kv::BlockId page :
       task.sequence->drop_pages(task.drops->policy, task.drops->prompt_tokens)) {
    cache_.release(page, true);
  }
}

void Scheduler::append(SequenceTask& task, TokenId token) {
  ASSERT(task.samples_in_flight > 0, "a token was being chosen");
  --task.samples_in_flight;
  task.tokens.push_back(token);
  tenants_.charge_minute(task.tenant, 1);
}

void Scheduler::accept_draft(SequenceTask& task) {
  ++task.samples_in_flight;
  if (task.state == TaskState::kRunning) ++tenants_[task.tenant].kv_tokens_held;
}

void Scheduler::end_drafts(SequenceTask& task) {
  task.drafts_in_flight = 0;
  if (task.sequence) cache_.release_unwritten(*task.sequence);
}

void Scheduler::fork(SequenceTask& leader, SequenceTask& follower) {
  ASSERT(leader.sequence_count > 1 && leader.last_launch == begin_collect().launch,
         "a slot is kept for every fork, and the leader waits for them");
  follower.arrival = ++arrivals_;
  follower.scope->counts_lookup = false;  // the leader's lookup was counted
  follower.context_class = leader.context_class;
  follower.scope->branch = leader.scope->branch;
  follower.tokens_cached = leader.tokens_cached;
  follower.prompt_tokens_seen = leader.prompt_tokens_seen;
  follower.prompt_tokens_written = leader.prompt_tokens_written;
  if (follower.deadline_ns != kNoDeadline) deadlines_.emplace(follower.deadline_ns, &follower);
  --leader.sequence_count;
  if (leader.state == TaskState::kPreempted) {  // the follower waits as well
    follower.preemptions = 1;
    return requeue(follower);
  }
  follower.sequence = cache_.fork(*leader.sequence);
  follower.sequence->expect(follower.tokens_expected());
  follower.tokens.reserve(follower.tokens_expected());
  follower.tokens_launched = leader.sequence->tokens_computed();
  follower.tokens_at_admission = follower.tokens.size();
  follower.state = TaskState::kRunning;
  // The slot moves from the leader to the follower.
  --tenants_[leader.tenant].sequences_running;
  --classes_[leader.context_class].sequences;
  --sequences_claimed_;
  start_running(follower);
}

void Scheduler::finish(SequenceTask& task) {
  switch (task.state) {
    case TaskState::kWaiting:
      waiting_.remove(task);
      std::erase(requeued_, &task);
      --waiting_count(task);
      break;
    case TaskState::kRunning:
      stop_running(task);
      break;
    case TaskState::kPreempted:
      std::erase(draining_, &task);
      break;
    case TaskState::kParked:
      std::erase(parked_, &task);
      --waiting_count(task);
      break;
    case TaskState::kFinished:
      ASSERT(false, "a task ends once");
  }
  task.state = TaskState::kFinished;
  is_listed_ = false;
  if (task.deadline_ns != kNoDeadline) deadlines_.erase({task.deadline_ns, &task});
  if (task.sequence && !quiet(task)) {
    pending_closes_.push_back({task.last_launch, std::move(*task.sequence)});
  }
  task.sequence.reset();
}

void Scheduler::end_collect() {
  const Step& step = begin_collect();
  launches_collected_ = step.launch;
  for (const kv::Copy& copy : step.copies) cache_.copied(copy);
  std::erase_if(pending_closes_,
                [&](const PendingClose& entry) { return entry.launch <= step.launch; });
  std::erase_if(pending_releases_, [&](const PendingRelease& entry) {
    if (entry.launch > step.launch) return false;
    cache_.release(entry.block);
    return true;
  });
  std::erase_if(draining_, [&](SequenceTask* task) {
    if (!quiet(*task)) return false;
    requeue(*task);
    return true;
  });
}

SequenceTask* Scheduler::expired(std::int64_t now_ns) const {
  const bool any = !deadlines_.empty() && deadlines_.begin()->first <= now_ns;
  return any ? deadlines_.begin()->second : nullptr;
}

void Scheduler::check(bool others_hold_blocks) const {
  cache_.check();
  std::uint64_t claimed = 0;
  std::uint64_t running_tokens = 0;
  std::uint64_t held_tokens = 0;
  std::vector<ClassUse> uses(classes_.size());
  for (const SequenceTask* const task : running_) {
    ASSERT(task->state == TaskState::kRunning && task->sequence, "running tasks hold a sequence");
    ASSERT(task->tokens_launched >= task->tokens_computed(), "nothing is computed before its time");
    ASSERT(task->tokens_launched <= task->length(), "only known tokens are fed");
    claimed += task->sequence_count;
    running_tokens += task->length();
    uses[task->context_class].sequences += task->sequence_count;
    uses[task->context_class].blocks += task->class_blocks;
  }
  ASSERT(uses == classes_, "length classes' accounts add up");
  ASSERT(std::is_sorted(running_.begin(), running_.end(), comes_before),
         "running tasks are in order");
  ASSERT(claimed == sequences_claimed_ && claimed <= options_.sequences_max,
         "sequences are counted and bounded");
  WaitCounts by_reason{};
  waiting_.for_each([&](const SequenceTask& task) {
    ++by_reason[static_cast<std::size_t>(task.waits_for)];
    ASSERT(task.state == TaskState::kWaiting && !task.sequence, "waiting tasks hold nothing");
    ASSERT(task.times_passed <= options_.passes_max, "nobody is passed for ever");
    ASSERT(task.prefix_waits <= options_.prefix_waits_max, "nobody waits for a prefix for ever");
  });
  ASSERT(by_reason == waiting_.by_reason(), "who waits for what is counted");
  for (const SequenceTask* const task : parked_) {
    ASSERT(task->state == TaskState::kParked && !task->sequence, "parked tasks hold nothing");
  }
  std::uint64_t sequences = 0;
  std::uint64_t waiting = 0;
  for (std::uint32_t i = 0; i < tenants_.size(); ++i) {
    sequences += tenants_[TenantId(i)].sequences_running;
    waiting += tenants_[TenantId(i)].sequences_waiting();
    held_tokens += tenants_[TenantId(i)].kv_tokens_held;
  }
  ASSERT(sequences == claimed && waiting == waiting_.size() + parked_.size() &&
             held_tokens == running_tokens,
         "tenants' accounts add up");
  if (running_.empty() && draining_.empty() && launches_running() == 0) {
    ASSERT(pending_closes_.empty() && pending_releases_.empty(),
           "nothing is kept for launches when none runs");
    ASSERT(others_hold_blocks || cache_.blocks_available() == cache_.pool().blocks(),
           "nobody holds a block when nothing runs");
  }
}

}  // namespace pagoda::sched

#include "sched/scheduler.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::sched {

Scheduler::Scheduler(const SchedulerOptions& options, kv::Cache& cache, TenantTable& tenants,
                     std::uint32_t launches_ahead)
    : options_(options),
      cache_(cache),
      tenants_(tenants),
      demand_{.block_tokens = cache.options().block_tokens,
              .chunk_tokens_max = options.batched_tokens_max * (launches_ahead + 1)},
      planner_(options_, demand_),
      classes_(options.context_classes.size()),
      steps_(launches_ahead + 1) {
  ASSERT(options.sequences_max > 0 && options.batched_tokens_max >= options.sequences_max,
         "every running sequence gets a token");
  running_.reserve(options.sequences_max);
  draining_.reserve(options.sequences_max);
  pending_closes_.reserve(options.sequences_max);
  for (Step& step : steps_) step.chunks.reserve(options.sequences_max);
}

void Scheduler::enqueue(SequenceTask& task) {
  ASSERT(task.state == TaskState::kWaiting && task.scope && task.tokens.size() < task.tokens_max,
         "a task has something to compute");
  task.arrival = ++arrivals_;
  task.context_class = options_.context_classes.class_of(task.prompt_tokens);
  tenants_.enter(task.tenant, task.prompt_tokens);
  ++waiting_count(task);
  tenants_[task.tenant].asked_step = step_count_ + 1;
  if (task.deadline_ns != kNoDeadline) deadlines_.emplace(task.deadline_ns, &task);
  waiting_.push(task);
  is_listed_ = false;
}

const Plan& Scheduler::plan() {
  ++step_count_;
  is_listed_ = false;
  const Plan& plan = planner_.plan({.running = running_,
                                    .waiting = waiting_,
                                    .tenants = tenants_,
                                    .cache = cache_,
                                    .classes = classes_,
                                    .sequences_claimed = sequences_claimed_,
                                    .blocks_coming = blocks_coming(),
                                    .launches_collected = launches_collected_,
                                    .step = step_count_,
                                    .itl = {options_.itl_target_s, step_time_.costs()}});
  stands_still_ = running_.empty() && draining_.empty() && plan.admit.empty() && plan.load.empty();
  return plan;
}

// Returns true when a running launch holds blocks that will be free once the launch is collected.
bool Scheduler::blocks_coming() const {
  if (!draining_.empty() || !pending_closes_.empty() || !pending_releases_.empty()) return true;
  for (LaunchNumber launch = launches_collected_ + 1; launch <= launches_; ++launch) {
    if (!steps_[launch % steps_.size()].copies.empty()) return true;
  }
  return false;
}

Step* Scheduler::reserve(const Plan& plan) {
  ASSERT(launches_running() < steps_.size(), "no more launches than allowed");
  Step& step = steps_[(launches_ + 1) % steps_.size()];
  step.launch = launches_ + 1;
  step.chunks.clear();
  step.copies.clear();
  step.admitted.clear();
  note_deferred(plan);
  for (SequenceTask* const task : plan.preempt) preempt(*task);
  for (SequenceTask* const task : plan.load) task->load_has_room = true;
  for (const ScheduledChunk& chunk : plan.chunks) {
    auto reserved = cache_.reserve(*chunk.task->sequence, chunk.first + chunk.tokens);
    auto* const copies = std::get_if<std::vector<kv::Copy>>(&reserved);
    if (copies == nullptr) continue;  // the chunk is planned again in the next step
    step.copies.insert(step.copies.end(), copies->begin(), copies->end());
    launch_chunk(step, chunk);
  }
  for (const Admission& admission : plan.admit) {
    if (admit(admission, step)) step.admitted.push_back(admission.task);
  }
  if (step.chunks.empty()) return nullptr;
  ++launches_;
  return &step;
}

void Scheduler::note_deferred(const Plan& plan) {
  for (const Deferred& deferred : plan.deferred) {
    SequenceTask& task = *deferred.task;
    waiting_.note_reason(task, deferred.reason);
    if (deferred.reason == WaitReason::kPrefix) ++task.prefix_waits;
    if (deferred.reason == WaitReason::kBlocks && step_count_ >= task.look_again_step) {
      task.blocks_wanted = deferred.blocks_wanted;
      task.look_again_step = step_count_ + options_.look_again_steps;
    }
    if (did_not_fit(deferred.reason)) task.times_passed += deferred.passes;
  }
}

void Scheduler::predict(Step& step) const {
  step.work = work_of(step.chunks);
  step.predicted_s = step_time_.costs().seconds(step.work);
}

std::uint64_t Scheduler::draft_room(const ScheduledChunk& chunk, bool may_take_blocks) const {
  const std::uint64_t blocks_free =
      may_take_blocks ? cache_.pool().blocks_free() / cache_.tree().groups() : 0;
  return chunk.task->sequence->tokens_reserved() - (chunk.first + chunk.tokens) +
         blocks_free * cache_.options().block_tokens;
}

std::uint32_t Scheduler::add_drafts(ScheduledChunk& chunk, std::uint32_t tokens,
                                    bool may_take_blocks) {
  SequenceTask& task = *chunk.task;
  ASSERT(
      chunk.samples && chunk.drafts == 0 && task.sequence_count == 1 && task.samples_in_flight == 1,
      "a draft follows the last token of one sequence");
  const std::uint64_t end = chunk.first + chunk.tokens;
  const auto drafts = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(tokens, draft_room(chunk, may_take_blocks)));
  if (drafts == 0) return 0;
  const auto reserved = cache_.reserve(*task.sequence, end + drafts);
  const auto* const copies = std::get_if<std::vector<kv::Copy>>(&reserved);
  ASSERT(copies != nullptr && copies->empty(), "the last block is the sequence's own already");
  chunk.tokens += drafts;
  chunk.drafts = drafts;
  task.drafts_in_flight = drafts;
  tenants_.charge_tokens(task.tenant, drafts);
  return drafts;
}

// Opens the sequence on its cached prefix and reserves blocks for the first prefill chunk. Returns
// false, and the sequence keeps waiting, when the cache has changed since the plan.
bool Scheduler::admit(const Admission& admission, Step& step) {
  SequenceTask& task = *admission.task;
  const kv::Match found = cache_.match(*task.scope, task.tokens);
  const kv::Match match = task.compute_whole_prompt ? kv::Match{} : found;
  if (match.tokens < task.tokens_seen_in_pool) return false;  // blocks were evicted since
  if (task.preemptions == 0) {
    task.explanation = explain(*task.scope, task.tokens, found, task.compute_whole_prompt);
  }
  auto opened = cache_.open(*task.scope, match, task.tokens, task.block_hashes);
  auto* const open = std::get_if<kv::Opened>(&opened);
  if (open == nullptr) return false;
  task.scope->counts_lookup = false;  // counts the first lookup only, not those of resumes
  task.scope->branch = open->sequence.branch();
  const std::uint64_t behind = task.tokens_behind(match.tokens);
  const auto tokens =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(behind, admission.tokens_max));
  open->sequence.expect(task.tokens_expected());
  if (task.drops) open->sequence.select_pages(task.drops->prompt_tokens);
  auto reserved = cache_.reserve(open->sequence, match.tokens + tokens);
  auto* const copies = std::get_if<std::vector<kv::Copy>>(&reserved);
  if (copies == nullptr) {
    for (const kv::Copy& copy : open->copies) cache_.copied(copy);
    return false;
  }
  step.copies.insert(step.copies.end(), open->copies.begin(), open->copies.end());
  step.copies.insert(step.copies.end(), copies->begin(), copies->end());

  waiting_.remove(task);
  --waiting_count(task);
  task.state = TaskState::kRunning;
  task.sequence = std::move(open->sequence);
  task.tokens.reserve(task.tokens_expected());
  task.tokens_launched = match.tokens;
  task.tokens_at_admission = task.tokens.size();
  task.times_passed = 0;
  task.look_again_step = 0;
  if (task.preemptions == 0) {
    task.tokens_cached = match.tokens;
    task.prompt_tokens_seen = found.tokens;
  }
  task.class_blocks = demand_.blocks_at_peak(task.scope->groups(), task.length(),
                                             task.tokens_held_max(task.length()));
  start_running(task);
  launch_chunk(step, {.task = &task,
                      .first = match.tokens,
                      .tokens = tokens,
                      .samples = match.tokens + tokens == task.length()});
  return true;
}

void Scheduler::skip_ahead(SequenceTask& task) {
  if (task.state != TaskState::kRunning || !quiet(task) || task.compute_whole_prompt) return;
  const kv::Match match = cache_.match(*task.scope, task.tokens, kv::MatchEnd::kWholeBlock);
  if (match.tokens <= task.tokens_launched) return;
  auto opened = cache_.open(*task.scope, match, task.tokens, task.block_hashes);
  auto* const open = std::get_if<kv::Opened>(&opened);
  if (open == nullptr) return;
  open->sequence.expect(task.tokens_expected());
  if (task.drops) open->sequence.select_pages(task.drops->prompt_tokens);
  task.scope->branch = open->sequence.branch();
  task.sequence = std::move(open->sequence);
  task.tokens_launched = match.tokens;
}

void Scheduler::launch_chunk(Step& step, const ScheduledChunk& chunk) {
  SequenceTask& task = *chunk.task;
  task.tokens_launched = chunk.first + chunk.tokens;
  task.last_launch = step.launch;
  if (chunk.first < task.prompt_tokens) {
    const std::uint64_t end = std::min(chunk.first + chunk.tokens, task.prompt_tokens);
    task.prompt_tokens_computed += end - chunk.first;
    // Tokens that the cache had, or that are computed again after a preemption, were not written
    // now.
    const std::uint64_t fresh = std::max(chunk.first, task.prompt_tokens_seen);
    if (fresh < end) task.prompt_tokens_written += end - fresh;
    task.prompt_tokens_seen = std::max(task.prompt_tokens_seen, end);
  }
  tenants_.charge_tokens(task.tenant, chunk.tokens);
  if (chunk.samples) {
    ++task.samples_in_flight;
    ++tenants_[task.tenant].kv_tokens_held;
  }
  step.chunks.push_back(chunk);
}

void Scheduler::start_running(SequenceTask& task) {
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &task, comes_before), &task);
  Tenant& tenant = tenants_[task.tenant];
  tenant.sequences_running += task.sequence_count;
  tenant.kv_tokens_held += task.length();
  sequences_claimed_ += task.sequence_count;
  classes_[task.context_class].sequences += task.sequence_count;
  classes_[task.context_class].blocks += task.class_blocks;
}

void Scheduler::stop_running(SequenceTask& task) {
  const auto at = std::lower_bound(running_.begin(), running_.end(), &task, comes_before);
  ASSERT(at != running_.end() && *at == &task, "the task runs");
  running_.erase(at);
  Tenant& tenant = tenants_[task.tenant];
  tenant.sequences_running -= task.sequence_count;
  tenant.kv_tokens_held -= task.length();
  sequences_claimed_ -= task.sequence_count;
  classes_[task.context_class].sequences -= task.sequence_count;
  classes_[task.context_class].blocks -= task.class_blocks;
}

void Scheduler::preempt(SequenceTask& task) {
  ASSERT(task.state == TaskState::kRunning, "only running tasks are preempted");
  stop_running(task);
  ++task.preemptions;
  task.state = TaskState::kPreempted;
  if (quiet(task)) {
    requeue(task);
  } else {
    draining_.push_back(&task);
  }
}

// The sequence's KV blocks stay in the cache, to be matched again or evicted.
void Scheduler::requeue(SequenceTask& task) {
  task.sequence.reset();
  task.tokens_launched = 0;
  task.waits_for = WaitReason::kNew;
  ++waiting_count(task);
  if (task.paused) {
    task.state = TaskState::kParked;
    parked_.push_back(&task);
  } else {
    wait(task);
  }
}

// Limits of waiting requests count those that have not run yet: what others, or slow readers,
// preempt is no reason to refuse a tenant's next request.
std::uint64_t& Scheduler::waiting_count(const SequenceTask& task) {
  Tenant& tenant = tenants_[task.tenant];
  return task.was_preempted() ? tenant.sequences_preempted : tenant.requests_queued;
}

void Scheduler::wait(SequenceTask& task) {
  task.state = TaskState::kWaiting;
  waiting_.push(task);
  requeued_.push_back(&task);
}

void Scheduler::resume(SequenceTask& task) {
  ASSERT(task.state == TaskState::kParked, "the task is parked");
  std::erase(parked_, &task);
  task.paused = false;
  wait(task);
}

}  // namespace pagoda::sched

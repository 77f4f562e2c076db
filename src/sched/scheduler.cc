#include "sched/scheduler.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::sched {

Scheduler::Scheduler(const SchedulerOptions& options, kv::Cache& cache, TenantTable& tenants,
                     std::uint32_t launches_ahead)
    : options_(options),
      cache_(cache),
      tenants_(tenants),
      footprint_{.slices = cache.slice_reaches(),
                 .block_tokens = cache.block_tokens(),
                 .chunk_tokens_max = options.batched_tokens_max * (launches_ahead + 1)},
      planner_(options_, footprint_),
      classes_(options.context_classes.size()),
      steps_(launches_ahead + 1) {
  ASSERT(options.sequences_max > 0 && options.batched_tokens_max >= options.sequences_max,
         "every running answer gets a row");
  running_.reserve(options.sequences_max);
  draining_.reserve(options.sequences_max);
  leaving_.reserve(options.sequences_max);
  for (Step& step : steps_) step.rows.reserve(options.sequences_max);
}

void Scheduler::enqueue(Task& task) {
  ASSERT(task.state == TaskState::kWaiting && task.domain && task.tokens.size() < task.tokens_max,
         "a task has something to compute");
  task.arrival = ++arrivals_;
  task.context_class = options_.context_classes.class_of(task.prompt_tokens);
  tenants_.enter(task.tenant, task.prompt_tokens);
  ++tenants_[task.tenant].requests_queued;
  tenants_[task.tenant].asked_step = step_count_ + 1;
  if (task.deadline_ns != kNoDeadline) deadlines_.emplace(task.deadline_ns, &task);
  waiting_.push(task);
}

const Plan& Scheduler::plan() {
  ++step_count_;
  const Plan& plan = planner_.plan({.running = running_,
                                    .waiting = waiting_,
                                    .tenants = tenants_,
                                    .cache = cache_,
                                    .classes = classes_,
                                    .sequences_claimed = sequences_claimed_,
                                    .blocks_coming = blocks_coming(),
                                    .launches_collected = launches_collected_,
                                    .step = step_count_});
  stands_still_ = running_.empty() && draining_.empty() && plan.admit.empty() && plan.load.empty();
  return plan;
}

// Does a launch that runs keep blocks from the pool which nobody will want when it is collected?
bool Scheduler::blocks_coming() const {
  if (!draining_.empty() || !leaving_.empty() || !given_up_.empty()) return true;
  for (LaunchNumber launch = launches_collected_ + 1; launch <= launches_; ++launch) {
    if (!steps_[launch % steps_.size()].copies.empty()) return true;
  }
  return false;
}

Step* Scheduler::reserve(const Plan& plan) {
  ASSERT(launches_running() < steps_.size(), "no more launches than allowed");
  Step& step = steps_[(launches_ + 1) % steps_.size()];
  step.launch = launches_ + 1;
  step.rows.clear();
  step.copies.clear();
  step.admitted.clear();
  note_unfit(plan);
  for (Task* const task : plan.preempt) preempt(*task);
  for (Task* const task : plan.load) task->load_has_room = true;
  for (const PlannedRows& rows : plan.rows) {
    auto reserved = cache_.reserve(*rows.task->sequence, rows.first + rows.rows);
    auto* const copies = std::get_if<std::vector<kv::Copy>>(&reserved);
    if (copies == nullptr) continue;  // its turn comes in the next step
    step.copies.insert(step.copies.end(), copies->begin(), copies->end());
    launch_rows(step, rows);
  }
  for (const Admission& admission : plan.admit) {
    if (admit(admission, step)) step.admitted.push_back(admission.task);
  }
  if (step.rows.empty()) return nullptr;
  ++launches_;
  return &step;
}

void Scheduler::note_unfit(const Plan& plan) {
  for (const Unfit& unfit : plan.unfit) {
    Task& task = *unfit.task;
    waiting_.note_reason(task, unfit.reason);
    if (unfit.reason == WaitReason::kPrefix) ++task.prefix_waits;
    if (unfit.reason == WaitReason::kBlocks && step_count_ >= task.look_again_step) {
      task.blocks_wanted = unfit.blocks_wanted;
      task.look_again_step = step_count_ + options_.look_again_steps;
    }
    if (did_not_fit(unfit.reason)) task.times_passed += unfit.passes;
  }
}

// Opens and reserves for the first chunk. False when something changed since it was planned: the
// task stays where it is.
bool Scheduler::admit(const Admission& admission, Step& step) {
  Task& task = *admission.task;
  const kv::Match found = cache_.match(*task.domain, task.tokens);
  const kv::Match match = task.compute_whole_prompt ? kv::Match{} : found;
  if (match.tokens < task.tokens_seen_in_pool) return false;  // who was admitted before took it
  if (task.preemptions == 0) {
    task.explanation = explain(*task.domain, task.tokens, found, task.compute_whole_prompt);
  }
  auto opened = cache_.open(*task.domain, match, task.tokens, task.names);
  auto* const open = std::get_if<kv::Opened>(&opened);
  if (open == nullptr) return false;
  task.domain->asks = false;  // it has: from now on it resumes
  const std::uint64_t behind = task.length() - match.tokens;
  const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(behind, admission.rows_max));
  open->sequence.expect(task.tokens_max);
  auto reserved = cache_.reserve(open->sequence, match.tokens + rows);
  auto* const copies = std::get_if<std::vector<kv::Copy>>(&reserved);
  if (copies == nullptr) {
    for (const kv::Copy& copy : open->copies) cache_.copied(copy);
    return false;
  }
  step.copies.insert(step.copies.end(), open->copies.begin(), open->copies.end());
  step.copies.insert(step.copies.end(), copies->begin(), copies->end());

  waiting_.remove(task);
  --tenants_[task.tenant].requests_queued;
  task.state = TaskState::kRunning;
  task.sequence = std::move(open->sequence);
  task.tokens.reserve(task.tokens_max);
  task.tokens_launched = match.tokens;
  task.times_passed = 0;
  task.look_again_step = 0;
  if (task.preemptions == 0) task.tokens_cached = match.tokens;
  task.class_blocks = footprint_.blocks_at_peak(task.length());
  start_running(task);
  launch_rows(step, {.task = &task,
                     .first = match.tokens,
                     .rows = rows,
                     .samples = match.tokens + rows == task.length()});
  return true;
}

void Scheduler::skip_ahead(Task& task) {
  if (task.state != TaskState::kRunning || !quiet(task) || task.compute_whole_prompt) return;
  const kv::Match match = cache_.match_blocks(*task.domain, task.tokens);
  if (match.tokens <= task.tokens_launched) return;
  auto opened = cache_.open(*task.domain, match, task.tokens, task.names);
  auto* const open = std::get_if<kv::Opened>(&opened);
  if (open == nullptr) return;
  open->sequence.expect(task.tokens_max);
  task.sequence = std::move(open->sequence);
  task.tokens_launched = match.tokens;
}

void Scheduler::launch_rows(Step& step, const PlannedRows& rows) {
  Task& task = *rows.task;
  task.tokens_launched = rows.first + rows.rows;
  task.last_launch = step.launch;
  if (rows.first < task.prompt_tokens) {
    task.prompt_rows_computed +=
        std::min<std::uint64_t>(rows.rows, task.prompt_tokens - rows.first);
  }
  tenants_.charge_rows(task.tenant, rows.rows);
  if (rows.samples) {
    ++task.samples_in_flight;
    ++tenants_[task.tenant].kv_tokens_held;
  }
  step.rows.push_back(rows);
}

void Scheduler::start_running(Task& task) {
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &task, comes_before), &task);
  Tenant& tenant = tenants_[task.tenant];
  tenant.answers_running += task.answers;
  tenant.kv_tokens_held += task.length();
  sequences_claimed_ += task.answers;
  classes_[task.context_class].sequences += task.answers;
  classes_[task.context_class].blocks += task.class_blocks;
}

void Scheduler::stop_running(Task& task) {
  const auto at = std::lower_bound(running_.begin(), running_.end(), &task, comes_before);
  ASSERT(at != running_.end() && *at == &task, "the task runs");
  running_.erase(at);
  Tenant& tenant = tenants_[task.tenant];
  tenant.answers_running -= task.answers;
  tenant.kv_tokens_held -= task.length();
  sequences_claimed_ -= task.answers;
  classes_[task.context_class].sequences -= task.answers;
  classes_[task.context_class].blocks -= task.class_blocks;
}

void Scheduler::preempt(Task& task) {
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

// Its rows stay in the cache, to be found again or evicted.
void Scheduler::requeue(Task& task) {
  task.sequence.reset();
  task.tokens_launched = 0;
  task.state = TaskState::kWaiting;
  task.waits_for = WaitReason::kNew;
  ++tenants_[task.tenant].requests_queued;
  waiting_.push(task);
  requeued_.push_back(&task);
}

}  // namespace pagoda::sched

// Preemption for those who wait: whom the planner preempts before it plans any token.
#include <algorithm>

#include "sched/planner.h"

namespace pagoda::sched {

std::uint64_t Planner::slots_left(const SchedulerView& now) const {
  return options_.sequences_max + slots_freed_ -
         std::min<std::uint64_t>(now.sequences_claimed, options_.sequences_max);
}

void Planner::plan_preemptions(const SchedulerView& now) {
  slots_freed_ = 0;
  slots_promised_ = 0;
  slots_held_.clear();
  if (now.waiting.empty()) return;
  preempt_paused(now);
  make_room_for_a_tenant(now);
}

// A sequence whose reader does not keep up gives its slot and its blocks to those who wait for
// either.
void Planner::preempt_paused(const SchedulerView& now) {
  const WaitCounts& by_reason = now.waiting.by_reason();
  const bool somebody_lacks_room =
      slots_left(now) == 0 || by_reason[static_cast<std::size_t>(WaitReason::kSequences)] > 0 ||
      by_reason[static_cast<std::size_t>(WaitReason::kBlocks)] > 0;
  if (!somebody_lacks_room) return;
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    if (now.running[i]->is_paused()) preempt(now, i);
  }
}

// A tenant of which nothing runs does not wait for the answers of others to end. Its first sequence
// gets the slots, and the blocks, of tenants that have most for their weight. At most one tenant a
// step, and nobody else takes what was given up for it.
void Planner::make_room_for_a_tenant(const SchedulerView& now) {
  newcomers_.clear();
  now.waiting.for_each_line([&](const SequenceTask& task, std::uint64_t /*tokens*/) {
    if (lacks_room(now, task)) newcomers_.push_back(&task);
  });
  if (newcomers_.empty()) return;
  std::sort(newcomers_.begin(), newcomers_.end(),
            [&](const SequenceTask* a, const SequenceTask* b) {
              const double clock_a = now.tenants[a->tenant].clock;
              const double clock_b = now.tenants[b->tenant].clock;
              if (a->priority == b->priority && clock_a != clock_b) return clock_a < clock_b;
              return comes_before(a, b);
            });
  count_slots(now);
  for (const SequenceTask* const task : newcomers_) {
    if (!find_victims(now, *task)) continue;
    promised_to_ = task->tenant;
    slots_promised_ = task->sequence_count;
    for (const std::size_t victim : victims_) preempt(now, victim);
    return;
  }
}

// Is this the first sequence of a tenant, and would slots or blocks let it start? Of a tenant of
// which nothing runs only room that is kept for others can hold it back as kTenant.
bool Planner::lacks_room(const SchedulerView& now, const SequenceTask& task) const {
  if (now.tenants[task.tenant].sequences_running > 0 || task.awaits_load) return false;
  if (task.sequence_count > fair_slots(now)) return false;
  if (task.waits_for == WaitReason::kContextClass) return false;
  return task.sequence_count > slots_left(now) || lacks_blocks(now, task);
}

bool Planner::lacks_blocks(const SchedulerView& now, const SequenceTask& task) const {
  return task.waits_for == WaitReason::kBlocks && !now.blocks_coming &&
         task.blocks_wanted > blocks_left_ - std::min(blocks_left_, blocks_set_aside(now));
}

// Lists the sequences whose preemption lets `first` start. False: there are not enough of them, and
// nobody is preempted for nothing.
bool Planner::find_victims(const SchedulerView& now, const SequenceTask& first) {
  victims_.clear();
  std::uint64_t slots = slots_left(now);
  std::uint64_t blocks = blocks_left_;
  std::uint64_t aside = blocks_set_aside(now);
  const std::uint64_t blocks_wanted = lacks_blocks(now, first) ? first.blocks_wanted : 0;
  const auto is_enough = [&] {
    return slots >= first.sequence_count &&
           blocks >= blocks_wanted + (blocks_wanted > 0 ? aside : 0);
  };
  while (!is_enough()) {
    const std::optional<std::size_t> victim = victim_of_most_slots(now, first);
    if (!victim) break;
    const SequenceTask& task = *now.running[*victim];
    victims_.push_back(*victim);
    decisions_[*victim] = Decision::kPreempted;
    slots_held_[task.tenant.value()] -= task.sequence_count;
    slots += task.sequence_count;
    blocks += task.sequence->blocks_held_alone(now.cache.pool());
    aside -= std::min(aside, blocks_promised(task));
  }
  for (const std::size_t victim : victims_) {  // listed, not yet preempted
    decisions_[victim] = Decision::kNone;
    slots_held_[now.running[victim]->tenant.value()] += now.running[victim]->sequence_count;
  }
  return is_enough() && !victims_.empty();
}

void Planner::count_slots(const SchedulerView& now) {
  slots_held_.assign(now.tenants.size(), 0);
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    const SequenceTask& task = *now.running[i];
    if (decisions_[i] == Decision::kNone) slots_held_[task.tenant.value()] += task.sequence_count;
  }
}

// Returns how many slots an active tenant may have others preempted for.
std::uint64_t Planner::fair_slots(const SchedulerView& now) const {
  return std::max(1u, options_.sequences_max / std::max(1u, tenants_active(now)));
}

// The cheapest sequence of the tenant with most slots for its weight, none that is more urgent than
// `first`. A tenant keeps at least as many as `first` wants, so that nobody is preempted in turn.
std::optional<std::size_t> Planner::victim_of_most_slots(const SchedulerView& now,
                                                         const SequenceTask& first) const {
  const auto slots = [&](const SequenceTask& task) { return slots_held_[task.tenant.value()]; };
  const auto share = [&](const SequenceTask& task) {
    return static_cast<double>(slots(task)) / now.tenants[task.tenant].limits.weight;
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    const SequenceTask& task = *now.running[i];
    if (decisions_[i] != Decision::kNone || task.priority < first.priority) continue;
    if (slots(task) < task.sequence_count + first.sequence_count) continue;
    const bool is_better =
        !best || share(task) > share(*now.running[*best]) ||
        (share(task) == share(*now.running[*best]) && is_cheaper(now, task, *now.running[*best]));
    if (is_better) best = i;
  }
  return best;
}

void Planner::preempt(const SchedulerView& now, std::size_t index) {
  const SequenceTask& task = *now.running[index];
  decisions_[index] = Decision::kPreempted;
  plan_.preempt.push_back(now.running[index]);
  slots_freed_ += task.sequence_count;
  if (!slots_held_.empty()) slots_held_[task.tenant.value()] -= task.sequence_count;
  // A running launch still uses the blocks, which return when the launch is collected.
  if (is_quiet(now, task)) blocks_left_ += task.sequence->blocks_held_alone(now.cache.pool());
}

}  // namespace pagoda::sched

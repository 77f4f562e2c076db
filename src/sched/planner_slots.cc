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
// either, but not before it has got a token for them: whoever is preempted gets on. Against its own
// tenant's limits it counts until it ends.
void Planner::preempt_paused(const SchedulerView& now) {
  const WaitCounts& by_reason = now.waiting.by_reason();
  const bool somebody_lacks_room =
      slots_left(now) == 0 || by_reason[static_cast<std::size_t>(WaitReason::kSequences)] > 0 ||
      by_reason[static_cast<std::size_t>(WaitReason::kBlocks)] > 0;
  if (!somebody_lacks_room) return;
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    const SequenceTask& task = *now.running[i];
    if (task.paused && task.tokens.size() > task.tokens_at_admission) preempt(now, i);
  }
}

// A tenant of which nothing runs does not wait for the answers of others to end. Its first sequence
// gets the slots, and the blocks, of tenants that have most for their weight. At most one tenant a
// step, and nobody else takes what was given up for it.
void Planner::make_room_for_a_tenant(const SchedulerView& now) {
  const SequenceTask* first = nullptr;
  now.waiting.for_each_line([&](const SequenceTask& task, std::uint64_t /*tokens*/) {
    if (now.tenants[task.tenant].sequences_running > 0) return;
    const bool lacks_slots = may_start(task.waits_for) && task.sequence_count > slots_left(now);
    const bool lacks_blocks = task.waits_for == WaitReason::kBlocks && !now.blocks_coming &&
                              task.blocks_wanted > blocks_left_;
    if (!lacks_slots && !lacks_blocks) return;
    if (first == nullptr || now.tenants[task.tenant].clock < now.tenants[first->tenant].clock) {
      first = &task;
    }
  });
  if (first == nullptr || first->sequence_count > fair_slots(now)) return;
  count_slots(now);
  const std::uint64_t kept = first->sequence_count;
  std::uint64_t spare = slots_left(now);
  for (const std::uint64_t slots : slots_held_) spare += slots - std::min(slots, kept);
  if (spare < first->sequence_count) return;
  promised_to_ = first->tenant;
  slots_promised_ = first->sequence_count;
  const std::uint64_t slots = std::max<std::uint64_t>(slots_promised_, slots_left(now) + 1);
  while (slots_left(now) < slots) {
    const std::optional<std::size_t> victim = victim_of_most_slots(now, kept);
    if (!victim) return;
    preempt(now, *victim);
  }
}

void Planner::count_slots(const SchedulerView& now) {
  slots_held_.assign(now.tenants.size(), 0);
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    const SequenceTask& task = *now.running[i];
    if (decisions_[i] == Decision::kNone) slots_held_[task.tenant.value()] += task.sequence_count;
  }
}

// What one of the active tenants may ask others to give up for it.
std::uint64_t Planner::fair_slots(const SchedulerView& now) const {
  return std::max(1u, options_.sequences_max / std::max(1u, tenants_active(now)));
}

// The cheapest sequence of the tenant with most slots for its weight. A tenant keeps at least
// `kept` of them, so that nobody is preempted in turn.
std::optional<std::size_t> Planner::victim_of_most_slots(const SchedulerView& now,
                                                         std::uint64_t kept) const {
  const auto slots = [&](const SequenceTask& task) { return slots_held_[task.tenant.value()]; };
  const auto share = [&](const SequenceTask& task) {
    return static_cast<double>(slots(task)) / now.tenants[task.tenant].limits.weight;
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    const SequenceTask& task = *now.running[i];
    if (decisions_[i] != Decision::kNone || slots(task) < task.sequence_count + kept) continue;
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

#include "sched/planner.h"

#include <algorithm>

namespace pagoda::sched {
namespace {

// The task that is next to be admitted, unless it is known that it cannot be.
const Task* next_to_start(const Situation& now, WaitingQueue::Walk& walk) {
  if (now.waiting.empty()) return nullptr;
  walk.start(now.waiting, now.tenants);
  const Task* const task = walk.next();
  const bool may = task->waits_for == WaitReason::kNew || task->waits_for == WaitReason::kSequences;
  return may ? task : nullptr;
}

// The share of rows that a running prompt leaves to a task that waits, by weight, when that one's
// tenant had less. Else it would wait for the whole of the prompt, however long.
double share_owed(const Situation& now, const Task& running, const Task& waiting) {
  const Tenant& ahead = now.tenants[running.tenant];
  const Tenant& behind = now.tenants[waiting.tenant];
  const bool owed = waiting.tenant != running.tenant && waiting.priority <= running.priority &&
                    behind.clock < ahead.clock;
  return owed ? behind.limits.weight / (behind.limits.weight + ahead.limits.weight) : 0;
}

}  // namespace

const Plan& Planner::plan(const Situation& now) {
  plan_.clear();
  fates_.assign(now.running.size(), Fate::kOpen);
  rows_left_ = options_.batched_tokens_max;
  blocks_left_ = now.cache.blocks_available();
  plan_decodes(now);
  plan_prefills(now);
  plan_admissions(now);
  return plan_;
}

void Planner::plan_decodes(const Situation& now) {
  prefills_.clear();
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    const std::uint64_t behind = now.running[i]->rows_behind();
    if (behind > 1) prefills_.push_back(i);
    if (behind == 1 && fates_[i] == Fate::kOpen && rows_left_ > 0) give_rows(now, i, 1);
  }
}

void Planner::plan_prefills(const Situation& now) {
  const auto before = [&](std::size_t a, std::size_t b) {
    const Task& task_a = *now.running[a];
    const Task& task_b = *now.running[b];
    if (task_a.priority != task_b.priority) return task_a.priority < task_b.priority;
    const double clock_a = now.tenants[task_a.tenant].clock;
    const double clock_b = now.tenants[task_b.tenant].clock;
    if (clock_a != clock_b) return clock_a < clock_b;
    return task_a.arrival < task_b.arrival;
  };
  std::sort(prefills_.begin(), prefills_.end(), before);
  const bool contested = prefills_.size() > 1 || !plan_.rows.empty() || !now.waiting.empty();
  const bool may_start = !prefills_.empty() && now.sequences_claimed < options_.sequences_max;
  const Task* const next = may_start ? next_to_start(now, walk_) : nullptr;
  for (const std::size_t i : prefills_) {
    const double share = next != nullptr ? share_owed(now, *now.running[i], *next) : 0;
    const auto kept = static_cast<std::uint64_t>(share * options_.batched_tokens_max);
    if (rows_left_ <= kept) break;
    if (fates_[i] != Fate::kOpen) continue;
    const std::uint64_t rows = chunk(now.running[i]->rows_behind(), contested);
    give_rows(now, i, std::min(rows, rows_left_ - kept));
  }
}

std::uint64_t Planner::chunk(std::uint64_t rows_behind, bool contested) const {
  std::uint64_t rows = std::min(rows_behind, rows_left_);
  if (contested && options_.long_prefill_tokens > 0) {
    rows = std::min<std::uint64_t>(rows, options_.long_prefill_tokens);
  }
  return rows;
}

void Planner::give_rows(const Situation& now, std::size_t index, std::uint64_t rows) {
  Task& task = *now.running[index];
  const std::uint64_t tokens = task.tokens_launched + rows;
  const std::uint64_t blocks = now.cache.blocks_needed(*task.sequence, tokens);
  if (blocks > blocks_left_ && !find_blocks(now, index, blocks)) return;
  fates_[index] = Fate::kRows;
  blocks_left_ -= blocks;
  rows_left_ -= rows;
  plan_.rows.push_back({.task = &task,
                        .first = task.tokens_launched,
                        .rows = static_cast<std::uint32_t>(rows),
                        .samples = tokens == task.length()});
}

// Preempts until `needy` has its blocks. False when it has to wait: it was the cheapest itself, or
// blocks are on their way back.
bool Planner::find_blocks(const Situation& now, std::size_t needy, std::uint64_t blocks) {
  if (now.blocks_coming) return false;
  while (blocks > blocks_left_) {
    const std::optional<std::size_t> victim = cheapest_to_lose(now);
    if (!victim) return false;
    const Task& task = *now.running[*victim];
    fates_[*victim] = Fate::kPreempted;
    plan_.preempt.push_back(now.running[*victim]);
    // While a launch still uses them its blocks come back later.
    const bool at_once = task.last_launch <= now.launches_collected;
    if (at_once) blocks_left_ += now.cache.blocks_held_alone(*task.sequence);
    if (*victim == needy || !at_once) return false;
  }
  return true;
}

std::optional<std::size_t> Planner::cheapest_to_lose(const Situation& now) const {
  const auto cheaper = [](const Task& a, const Task& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.tokens_computed() != b.tokens_computed())
      return a.tokens_computed() < b.tokens_computed();
    const std::uint64_t left_a = a.tokens_max - a.length();
    const std::uint64_t left_b = b.tokens_max - b.length();
    if (left_a != left_b) return left_a > left_b;
    return a.arrival > b.arrival;
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    if (fates_[i] != Fate::kOpen) continue;
    if (!best || cheaper(*now.running[i], *now.running[*best])) best = i;
  }
  return best;
}

}  // namespace pagoda::sched

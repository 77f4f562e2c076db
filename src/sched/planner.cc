#include "sched/planner.h"

#include <algorithm>

namespace pagoda::sched {

const Plan& Planner::plan(const Situation& now) {
  plan_.clear();
  fates_.assign(now.running.size(), Fate::kOpen);
  rows_left_ = options_.batched_tokens_max;
  blocks_left_ = now.cache.blocks_available();
  plan_decodes(now);
  share_rows(now);
  plan_prefills(now);
  plan_admissions(now);
  if (plan_.rows.empty() && plan_.admit.empty() && plan_.preempt.empty()) {
    // Rows were set aside for those who cannot start after all: a step is not to be empty for it.
    plan_.unfit.clear();
    blocks_left_ = now.cache.blocks_available();
    shares_.free_all(rows_left_);
    plan_prefills(now);
    plan_admissions(now);
  }
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

// Prompts get what answers leave, and no more than a step may take while others may come.
void Planner::share_rows(const Situation& now) {
  std::uint32_t tenants_about = 0;
  for (std::uint32_t i = 0; i < now.tenants.size(); ++i) {
    tenants_about += is_about(now, TenantId(i)) ? 1 : 0;
  }
  if (tenants_about > 1) {
    rows_left_ = std::min<std::uint64_t>(rows_left_, options_.shared_step_tokens);
  }
  shares_.clear(now.tenants);
  for (const std::size_t i : prefills_) {
    const Task& task = *now.running[i];
    if (fates_[i] == Fate::kOpen) {
      shares_.add(task.tenant, task.rows_behind(), task.priority, true);
    }
  }
  const std::uint64_t places =
      options_.sequences_max -
      std::min<std::uint64_t>(now.sequences_claimed, options_.sequences_max);
  now.waiting.for_each_line([&](const Task& task, std::uint64_t tokens) {
    shares_.add(task.tenant, tokens, task.priority,
                task.answers <= places && may_start(task.waits_for));
  });
  shares_.divide(now.tenants, rows_left_);
}

bool Planner::is_about(const Situation& now, TenantId id) const {
  const Tenant& tenant = now.tenants[id];
  const bool asked = tenant.asked_step > 0 && now.step - tenant.asked_step < options_.absence_steps;
  return asked || tenant.busy();
}

void Planner::plan_prefills(const Situation& now) {
  const auto before = [&](std::size_t a, std::size_t b) {
    const Task& task_a = *now.running[a];
    const Task& task_b = *now.running[b];
    if (task_a.priority != task_b.priority) return task_a.priority < task_b.priority;
    const bool little_a = shares_.wants_little(task_a.tenant);
    const bool little_b = shares_.wants_little(task_b.tenant);
    if (little_a != little_b) return little_a;
    const double clock_a = now.tenants[task_a.tenant].clock;
    const double clock_b = now.tenants[task_b.tenant].clock;
    if (clock_a != clock_b) return clock_a < clock_b;
    return task_a.arrival < task_b.arrival;
  };
  std::sort(prefills_.begin(), prefills_.end(), before);
  const bool contested = prefills_.size() > 1 || !plan_.rows.empty() || !now.waiting.empty();
  for (const std::size_t i : prefills_) {
    if (fates_[i] != Fate::kOpen) continue;
    const Task& task = *now.running[i];
    const std::uint64_t rows =
        std::min(chunk(task.rows_behind(), contested), shares_.left(task.tenant));
    if (rows > 0 && give_rows(now, i, rows)) shares_.take(task.tenant, rows);
  }
}

std::uint64_t Planner::chunk(std::uint64_t rows_behind, bool contested) const {
  std::uint64_t rows = std::min(rows_behind, rows_left_);
  if (contested && options_.long_prefill_tokens > 0) {
    rows = std::min<std::uint64_t>(rows, options_.long_prefill_tokens);
  }
  return rows;
}

bool Planner::give_rows(const Situation& now, std::size_t index, std::uint64_t rows) {
  Task& task = *now.running[index];
  const std::uint64_t tokens = task.tokens_launched + rows;
  const std::uint64_t blocks = now.cache.blocks_needed(*task.sequence, tokens);
  if (blocks > blocks_left_ && !find_blocks(now, index, blocks)) return false;
  fates_[index] = Fate::kRows;
  blocks_left_ -= blocks;
  rows_left_ -= rows;
  plan_.rows.push_back({.task = &task,
                        .first = task.tokens_launched,
                        .rows = static_cast<std::uint32_t>(rows),
                        .samples = tokens == task.length()});
  return true;
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
  const auto held = [&](const Task& task) {
    const Tenant& tenant = now.tenants[task.tenant];
    return static_cast<double>(tenant.kv_tokens_held) / tenant.limits.weight;
  };
  const auto cheaper = [&](const Task& a, const Task& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.tenant != b.tenant && held(a) != held(b)) return held(a) > held(b);
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

#include "sched/planner.h"

#include <algorithm>

namespace pagoda::sched {

const Plan& Planner::plan(const SchedulerView& now) {
  plan_.clear();
  decisions_.assign(now.running.size(), Decision::kNone);
  token_budget_ = options_.batched_tokens_max;
  blocks_left_ = now.cache.blocks_available();
  lacks_blocks_ = false;
  plan_preemptions(now);
  plan_decodes(now);
  const std::size_t decodes = plan_.chunks.size();
  limit_time(now);
  share_tokens(now);
  plan_prefills(now);
  plan_admissions(now);
  if (plan_.chunks.empty() && plan_.admit.empty() && plan_.preempt.empty()) {
    // Tokens were set aside for tenants whose sequences cannot start. The second attempt gives the
    // tokens to any tenant, since a step must not be empty while work is left.
    plan_.deferred.clear();
    plan_.load.clear();
    blocks_left_ = now.cache.blocks_available();
    shares_.free_all(token_budget_);
    plan_prefills(now);
    plan_admissions(now);
  }
  // Draft tokens pay by themselves: only beside prompts does the time bound them.
  const bool has_prompts = plan_.chunks.size() > decodes || !plan_.admit.empty();
  plan_.tokens_left = has_prompts ? token_budget_ : untimed_budget_;
  return plan_;
}

bool Planner::several_tenants_run(const SchedulerView& now) {
  return std::any_of(now.running.begin(), now.running.end(), [&](const SequenceTask* task) {
    return task->tenant != now.running.front()->tenant;
  });
}

// Few threads work on grammars, and everybody in the step waits for the last one: the sequences of
// a tenant take turns, the one first that has waited longest.
void Planner::share_grammar_work(const SchedulerView& now) {
  yields_.assign(now.running.size(), false);
  costly_.clear();
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    const SequenceTask& task = *now.running[i];
    if (task.grammar_work <= options_.light_grammar_work) continue;  // nearly always
    if (task.tokens_behind() == 1 && decisions_[i] == Decision::kNone) costly_.push_back(i);
  }
  if (costly_.empty() || !several_tenants_run(now)) return;
  std::stable_sort(costly_.begin(), costly_.end(), [&](std::size_t a, std::size_t b) {
    return now.running[a]->last_launch < now.running[b]->last_launch;
  });
  grammar_work_taken_.assign(now.tenants.size(), 0);
  for (const std::size_t i : costly_) {
    const SequenceTask& task = *now.running[i];
    std::uint64_t& taken = grammar_work_taken_[task.tenant.value()];
    yields_[i] = taken > 0 && taken + task.grammar_work > options_.tenant_grammar_work;
    if (!yields_[i]) taken += task.grammar_work;
  }
}

void Planner::plan_decodes(const SchedulerView& now) {
  share_grammar_work(now);
  prefills_.clear();
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    const std::uint64_t behind = now.running[i]->tokens_behind();
    if (behind > 1 && decisions_[i] == Decision::kNone) prefills_.push_back(i);
    const bool decodes = behind == 1 && decisions_[i] == Decision::kNone && !yields_[i];
    if (decodes && token_budget_ > 0) schedule_tokens(now, i, 1);
  }
}

// Prompt tokens have so much time that sequences which decode in this step, or whose next token is
// still being sampled, get their tokens within the target.
void Planner::limit_time(const SchedulerView& now) {
  time_.clear();
  if (now.itl.target_s <= 0) return;
  const bool somebody_decodes =
      !plan_.chunks.empty() ||
      std::any_of(now.running.begin(), now.running.end(), [](const SequenceTask* task) {
        return task->samples_in_flight > 0 && task->length() < task->tokens_max;
      });
  if (somebody_decodes) time_.begin(now.itl, work_of(plan_.chunks));
}

// Prefills share the tokens that decodes leave, at most shared_step_tokens while several tenants
// are active, and no more than there is time for.
void Planner::share_tokens(const SchedulerView& now) {
  if (tenants_active(now) > 1) {
    token_budget_ = std::min<std::uint64_t>(token_budget_, options_.shared_step_tokens);
  }
  untimed_budget_ = token_budget_;
  if (time_.is_bounded()) token_budget_ = time_.tokens_left(token_budget_);
  shares_.clear(now.tenants);
  for (const std::size_t i : prefills_) {
    const SequenceTask& task = *now.running[i];
    if (decisions_[i] == Decision::kNone) {
      shares_.add(task.tenant, task.tokens_behind(), task.priority, true);
    }
  }
  const std::uint64_t slots = slots_left(now);
  now.waiting.for_each_line([&](const SequenceTask& task, std::uint64_t tokens) {
    shares_.add(task.tenant, tokens, task.priority,
                task.sequence_count <= slots && may_start(task.waits_for));
  });
  shares_.divide(now.tenants, token_budget_);
}

std::uint32_t Planner::tenants_active(const SchedulerView& now) const {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < now.tenants.size(); ++i) {
    count += is_active(now, TenantId(i)) ? 1 : 0;
  }
  return count;
}

bool Planner::is_active(const SchedulerView& now, TenantId id) const {
  const Tenant& tenant = now.tenants[id];
  const bool asked =
      tenant.asked_step > 0 && now.step - tenant.asked_step < options_.inactive_steps;
  return asked || tenant.busy();
}

void Planner::plan_prefills(const SchedulerView& now) {
  const auto before = [&](std::size_t a, std::size_t b) {
    const SequenceTask& task_a = *now.running[a];
    const SequenceTask& task_b = *now.running[b];
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
  const bool contested = prefills_.size() > 1 || !plan_.chunks.empty() || !now.waiting.empty();
  for (const std::size_t i : prefills_) {
    if (decisions_[i] != Decision::kNone) continue;
    const SequenceTask& task = *now.running[i];
    const std::uint64_t wanted =
        std::min(chunk(task.tokens_behind(), contested), shares_.left(task.tenant));
    const std::uint64_t tokens = timed_chunk(task, task.tokens_launched, wanted);
    if (tokens == 0 || !schedule_tokens(now, i, tokens)) continue;
    take_prompt_tokens(task, plan_.chunks.back().first, tokens);
  }
}

std::uint64_t Planner::chunk(std::uint64_t tokens_behind, bool contested) const {
  std::uint64_t tokens = std::min(tokens_behind, token_budget_);
  if (contested && options_.long_prefill_tokens > 0) {
    tokens = std::min<std::uint64_t>(tokens, options_.long_prefill_tokens);
  }
  return tokens;
}

// Returns how many of `tokens` tokens there is time for. The tenant has the time that goes with its
// tokens: a long context, whose tokens take longer, takes no other tenant's.
std::uint64_t Planner::timed_chunk(const SequenceTask& task, std::uint64_t first,
                                   std::uint64_t tokens) const {
  if (!time_.is_bounded() || tokens == 0) return tokens;
  const std::uint64_t allowed = std::min(shares_.left(task.tenant), token_budget_);
  const double share = static_cast<double>(allowed) / static_cast<double>(token_budget_);
  return time_.tokens_of(task, first, tokens, share);
}

// Called once the tokens are in the plan.
void Planner::take_prompt_tokens(const SequenceTask& task, std::uint64_t first,
                                 std::uint64_t tokens) {
  shares_.take(task.tenant, tokens);
  time_.take(task, first, tokens);
  untimed_budget_ -= tokens;
  if (time_.is_bounded()) token_budget_ = time_.tokens_left(token_budget_);
}

bool Planner::schedule_tokens(const SchedulerView& now, std::size_t index, std::uint64_t tokens) {
  SequenceTask& task = *now.running[index];
  const std::uint64_t end = task.tokens_launched + tokens;
  const std::uint64_t blocks = now.cache.blocks_needed(*task.sequence, end);
  if (blocks > blocks_left_ && !find_blocks(now, index, blocks)) return false;
  decisions_[index] = Decision::kScheduled;
  blocks_left_ -= blocks;
  token_budget_ -= tokens;
  plan_.chunks.push_back({.task = &task,
                          .first = task.tokens_launched,
                          .tokens = static_cast<std::uint32_t>(tokens),
                          .samples = end == task.length()});
  return true;
}

// Preempts sequences until `blocks` are left for `needy`. Returns false when `needy` has to wait:
// no victim is left, `needy` was the cheapest victim, or a running launch still holds the blocks.
bool Planner::find_blocks(const SchedulerView& now, std::size_t needy, std::uint64_t blocks) {
  if (now.blocks_coming) return false;
  while (blocks > blocks_left_) {
    const std::optional<std::size_t> victim = preemption_victim(now);
    if (!victim) return false;
    lacks_blocks_ = true;
    preempt(now, *victim);
    if (*victim == needy || !is_quiet(now, *now.running[*victim])) return false;
  }
  return true;
}

std::optional<std::size_t> Planner::preemption_victim(const SchedulerView& now) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    if (decisions_[i] != Decision::kNone) continue;
    if (!best || is_cheaper(now, *now.running[i], *now.running[*best])) best = i;
  }
  return best;
}

bool Planner::is_cheaper(const SchedulerView& now, const SequenceTask& a,
                         const SequenceTask& b) const {
  const auto held = [&](const SequenceTask& task) {
    const Tenant& tenant = now.tenants[task.tenant];
    return static_cast<double>(tenant.kv_tokens_held) / tenant.limits.weight;
  };
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.tenant != b.tenant && held(a) != held(b)) return held(a) > held(b);
  if (a.tokens_computed() != b.tokens_computed()) return a.tokens_computed() < b.tokens_computed();
  const std::uint64_t left_a = a.tokens_max - a.length();
  const std::uint64_t left_b = b.tokens_max - b.length();
  if (left_a != left_b) return left_a > left_b;
  return a.arrival > b.arrival;
}

}  // namespace pagoda::sched

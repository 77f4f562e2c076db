// Which waiting tasks start.
#include <algorithm>

#include "sched/planner.h"
#include "sched/shared_prefix.h"

namespace pagoda::sched {
namespace {

constexpr std::uint32_t kPlacesKept = 4;  // one of so many, at most
constexpr std::uint32_t kRoomKept = 8;    // one of so many blocks

std::uint64_t matched(const Task& task, std::uint64_t rows_behind) {
  return task.length() - rows_behind;
}

}  // namespace

void Planner::plan_admissions(const Situation& now) {
  sequences_left_ = options_.sequences_max -
                    std::min<std::uint64_t>(now.sequences_claimed, options_.sequences_max);
  // While a running task waits for blocks nobody is added.
  if (!plan_.preempt.empty() || sequences_left_ == 0) return;
  if (now.waiting.empty()) return;
  const std::uint64_t aside = blocks_set_aside(now);
  blocks_left_ -= std::min(blocks_left_, aside);
  classes_.assign(now.classes.begin(), now.classes.end());
  answers_admitted_.assign(now.tenants.size(), 0);
  kv_tokens_admitted_.assign(now.tenants.size(), 0);
  walk_waiting(now);
}

void Planner::walk_waiting(const Situation& now) {
  walk_.start(now.waiting, now.tenants);
  walk_.prefer([&](TenantId tenant) { return shares_.wants_little(tenant); });
  for (std::uint32_t looked_at = 0; looked_at < options_.candidates_max; ++looked_at) {
    Task* const task = sequences_left_ > 0 ? walk_.next() : nullptr;
    if (task == nullptr) break;
    const std::uint64_t rows_allowed = std::min(rows_left_, shares_.left(task->tenant));
    if (rows_allowed == 0 && may_start(task->waits_for)) {
      walk_.close_tenant();
      continue;
    }
    std::uint64_t rows_behind = 0;
    if (const std::optional<Unfit> unfit = judge(now, *task, rows_behind)) {
      plan_.unfit.push_back(*unfit);
      if (unfit->reason == WaitReason::kTenant) walk_.close_tenant();
      if (unfit->reason == WaitReason::kContextClass) walk_.close_class();
    } else if (task->load_wants_room || matched(*task, rows_behind) < task->tokens_seen_in_pool) {
      plan_.load.push_back(task);
      plan_.unfit.push_back({.task = task, .reason = WaitReason::kLoad});
      count_admitted(*task, blocks_judged_);
    } else if (rows_allowed == 0) {
      // What kept it is over: the next step sets rows aside for it.
      plan_.unfit.push_back({.task = task, .reason = WaitReason::kNew});
      walk_.close_tenant();
    } else {
      const std::uint64_t rows = std::min(chunk(rows_behind, true), rows_allowed);
      shares_.take(task->tenant, rows);
      plan_.admit.push_back({task, static_cast<std::uint32_t>(rows)});
      rows_left_ -= rows;
      walk_.count_rows(rows);
      count_admitted(*task, blocks_judged_);
      for (Unfit& earlier : plan_.unfit) ++earlier.passes;
    }
    if (someone_is_next()) break;
  }
}

// Was a task that did not fit passed often enough? Then nobody else passes it.
bool Planner::someone_is_next() const {
  return std::any_of(plan_.unfit.begin(), plan_.unfit.end(), [&](const Unfit& unfit) {
    return did_not_fit(unfit.reason) &&
           unfit.task->times_passed + unfit.passes >= options_.passes_max;
  });
}

std::optional<Unfit> Planner::judge(const Situation& now, Task& task, std::uint64_t& rows_behind) {
  if (task.answers > sequences_left_) return Unfit{&task, WaitReason::kSequences};
  if (const auto limit = reached_limit(now, task)) return Unfit{&task, *limit};
  if (task.awaits_load) return Unfit{&task, WaitReason::kLoad};
  if (now.step < task.look_again_step && task.blocks_wanted > blocks_left_) {
    return Unfit{&task, WaitReason::kBlocks, task.blocks_wanted};
  }
  const kv::Match match =
      task.compute_whole_prompt ? kv::Match{} : now.cache.match(*task.domain, task.tokens);
  if (task.prefix_waits < options_.prefix_waits_max && prefix_in_work(now, task, match.tokens)) {
    return Unfit{&task, WaitReason::kPrefix};
  }
  blocks_judged_ = blocks_to_run(now, task, match);
  if (blocks_judged_ > blocks_left_) return Unfit{&task, WaitReason::kBlocks, blocks_judged_};
  if (places_kept(now, task.tenant) > 0 &&
      blocks_judged_ + now.cache.pool().blocks() / kRoomKept > blocks_left_) {
    return Unfit{&task, WaitReason::kTenant};
  }
  rows_behind = task.length() - match.tokens;
  return std::nullopt;
}

std::optional<WaitReason> Planner::reached_limit(const Situation& now, const Task& task) const {
  const Tenant& tenant = now.tenants[task.tenant];
  const std::uint32_t id = task.tenant.value();
  const auto above = [](std::uint64_t limit, std::uint64_t value) {
    return limit > 0 && value > limit;
  };
  // A tenant with nothing running always has its turn: what it asked for was within its limits
  // then, and they may have been lowered since.
  if (has_a_place(now, task.tenant) &&
      (above(tenant.limits.answers_running,
             tenant.answers_running + answers_admitted_[id] + task.answers) ||
       above(tenant.limits.kv_tokens,
             tenant.kv_tokens_held + kv_tokens_admitted_[id] + task.length()))) {
    return WaitReason::kTenant;
  }
  if (task.answers + places_kept(now, task.tenant) > sequences_left_) return WaitReason::kTenant;
  const ContextClass& context_class = options_.context_classes[task.context_class];
  const ClassUse& use = classes_[task.context_class];
  // A class with nothing running always has its turn.
  if (context_class.share >= 1.0 || use.sequences == 0) return std::nullopt;
  const std::uint64_t blocks = footprint_.blocks_at_peak(task.length());
  if (use.sequences + task.answers > ContextClasses::part(context_class, options_.sequences_max) ||
      use.blocks + blocks > ContextClasses::part(context_class, now.cache.pool().blocks())) {
    return WaitReason::kContextClass;
  }
  return std::nullopt;
}

bool Planner::has_a_place(const Situation& now, TenantId id) const {
  return now.tenants[id].answers_running + answers_admitted_[id.value()] > 0;
}

// Places that the asker leaves to tenants that are about and have none. Who has none itself leaves
// none.
std::uint64_t Planner::places_kept(const Situation& now, TenantId asker) const {
  if (!has_a_place(now, asker)) return 0;
  std::uint64_t without = 0;
  for (std::uint32_t i = 0; i < now.tenants.size(); ++i) {
    without += is_about(now, TenantId(i)) && !has_a_place(now, TenantId(i)) ? 1 : 0;
  }
  return std::min<std::uint64_t>(without, options_.sequences_max / kPlacesKept);
}

// Is a running task, or one admitted by this plan, about to compute more of this task's prefix
// than the cache has? Only tasks that are at least as urgent are waited for.
bool Planner::prefix_in_work(const Situation& now, const Task& task,
                             std::uint64_t tokens_matched) const {
  if (task.compute_whole_prompt) return false;
  const std::span<const TokenId> wanted = std::span(task.tokens).first(task.tokens.size() - 1);
  const auto is_ahead = [&](const Task& other) {
    if (other.priority > task.priority || !other.domain->same_region(*task.domain)) return false;
    const std::uint64_t shared = shared_prefix(wanted, other.tokens);
    return shared >= tokens_matched + footprint_.block_tokens && other.tokens_computed() < shared;
  };
  for (const std::size_t i : prefills_) {
    if (fates_[i] != Fate::kPreempted && is_ahead(*now.running[i])) return true;
  }
  return std::any_of(plan_.admit.begin(), plan_.admit.end(),
                     [&](const Admission& admission) { return is_ahead(*admission.task); });
}

// Blocks that must be available for the task to compute all its known tokens.
std::uint64_t Planner::blocks_to_run(const Situation& now, const Task& task,
                                     const kv::Match& match) const {
  std::uint64_t held = 0;
  for (const kv::memory::LayerReach& reach : footprint_.slices) {
    const std::uint64_t first =
        kv::memory::first_block_kept(reach, match.tokens, footprint_.block_tokens);
    held += match.nodes.size() + (match.partial ? 1 : 0) - first;
  }
  const std::uint64_t peak = footprint_.blocks_at_peak(task.length());
  return now.cache.blocks_needed(match, match.tokens) + (peak > held ? peak - held : 0);
}

// What running tasks will still take: the rest of known tokens, and the next block of each answer.
std::uint64_t Planner::blocks_set_aside(const Situation& now) const {
  std::uint64_t promised = 0;
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    const Task& task = *now.running[i];
    const std::uint64_t peak = footprint_.blocks_at_peak(task.length() + 1);
    const std::uint64_t held = task.sequence->blocks_held();
    if (peak > held) promised += peak - held;
  }
  // Rows of this plan took their blocks from the same promise.
  std::uint64_t taken =
      now.cache.blocks_available() - std::min(now.cache.blocks_available(), blocks_left_);
  return promised - std::min(promised, taken);
}

void Planner::count_admitted(const Task& task, std::uint64_t blocks) {
  blocks_left_ -= blocks;
  sequences_left_ -= task.answers;
  classes_[task.context_class].sequences += task.answers;
  classes_[task.context_class].blocks += footprint_.blocks_at_peak(task.length());
  answers_admitted_[task.tenant.value()] += task.answers;
  kv_tokens_admitted_[task.tenant.value()] += task.length();
}

}  // namespace pagoda::sched

// Admission: the planner decides which waiting sequences start.
#include <algorithm>
#include <span>

#include "sched/planner.h"
#include "sched/shared_prefix.h"

namespace pagoda::sched {
namespace {

constexpr std::uint32_t kSlotsKept = 4;  // at most one slot in 4 is kept free
constexpr std::uint32_t kRoomKept = 8;   // one block in 8 is kept free while a slot is

std::uint64_t matched(const SequenceTask& task, std::uint64_t tokens_behind) {
  return task.length() - tokens_behind;
}

}  // namespace

void Planner::plan_admissions(const SchedulerView& now) {
  sequences_left_ = slots_left(now);
  // No sequence is admitted while a running sequence waits for blocks.
  if (lacks_blocks_ || sequences_left_ == 0) return;
  if (now.waiting.empty()) return;
  const std::uint64_t aside = blocks_set_aside(now);
  blocks_left_ -= std::min(blocks_left_, aside);
  classes_.assign(now.classes.begin(), now.classes.end());
  sequences_admitted_.assign(now.tenants.size(), 0);
  kv_tokens_admitted_.assign(now.tenants.size(), 0);
  walk_waiting(now);
}

void Planner::walk_waiting(const SchedulerView& now) {
  walk_.start(now.waiting, now.tenants);
  walk_.prefer([&](TenantId tenant) { return shares_.wants_little(tenant); });
  for (std::uint32_t looked_at = 0; looked_at < options_.candidates_max;) {
    SequenceTask* const task = sequences_left_ > 0 ? walk_.next() : nullptr;
    if (task == nullptr) break;
    // However many wait for pages from outside, those behind them are looked at.
    looked_at += task->awaits_load ? 0 : 1;
    const std::uint64_t tokens_allowed = std::min(token_budget_, shares_.left(task->tenant));
    if (tokens_allowed == 0 && may_start(task->waits_for)) {
      walk_.close_tenant();
      continue;
    }
    std::uint64_t tokens_behind = 0;
    if (const std::optional<Deferred> deferred = judge(now, *task, tokens_behind)) {
      plan_.deferred.push_back(*deferred);
      if (deferred->reason == WaitReason::kTenant) walk_.close_tenant();
      if (deferred->reason == WaitReason::kContextClass) walk_.close_class();
      if (!did_not_fit(deferred->reason)) continue;  // nobody is passed for long
    } else if (task->load_wants_room || matched(*task, tokens_behind) < task->tokens_seen_in_pool) {
      plan_.load.push_back(task);
      plan_.deferred.push_back({.task = task, .reason = WaitReason::kLoad});
      count_admitted(*task, blocks_judged_);
    } else if (tokens_allowed == 0) {
      // The sequence's reason to wait is gone: the next step sets tokens aside for its tenant.
      plan_.deferred.push_back({.task = task, .reason = WaitReason::kNew});
      walk_.close_tenant();
    } else {
      const std::uint64_t first = matched(*task, tokens_behind);
      const std::uint64_t tokens = timed_chunk(
          *task, first, std::min(chunk(task->tokens_behind(first), true), tokens_allowed));
      plan_.admit.push_back({task, static_cast<std::uint32_t>(tokens)});
      token_budget_ -= tokens;
      take_prompt_tokens(*task, first, tokens);
      walk_.count_tokens(tokens);
      count_admitted(*task, blocks_judged_);
      for (Deferred& earlier : plan_.deferred) ++earlier.passes;
    }
    if (must_not_pass()) break;
  }
}

// Returns true when a sequence that did not fit was passed passes_max times: no other sequence may
// pass any more.
bool Planner::must_not_pass() const {
  return std::any_of(plan_.deferred.begin(), plan_.deferred.end(), [&](const Deferred& deferred) {
    return did_not_fit(deferred.reason) &&
           deferred.task->times_passed + deferred.passes >= options_.passes_max;
  });
}

std::optional<Deferred> Planner::judge(const SchedulerView& now, SequenceTask& task,
                                       std::uint64_t& tokens_behind) {
  if (task.sequence_count > sequences_left_) return Deferred{&task, WaitReason::kSequences};
  if (const auto limit = reached_limit(now, task)) return Deferred{&task, *limit};
  if (task.awaits_load) return Deferred{&task, WaitReason::kLoad};
  if (now.step < task.look_again_step && task.blocks_wanted > blocks_left_) {
    return Deferred{&task, WaitReason::kBlocks, task.blocks_wanted};
  }
  const kv::Match match =
      task.compute_whole_prompt ? kv::Match{} : now.cache.match(*task.scope, task.tokens);
  if (task.prefix_waits < options_.prefix_waits_max && prefix_in_work(now, task, match.tokens)) {
    return Deferred{&task, WaitReason::kPrefix};
  }
  blocks_judged_ = blocks_to_run(now, task, match);
  if (blocks_judged_ > blocks_left_) return Deferred{&task, WaitReason::kBlocks, blocks_judged_};
  if (slots_kept(now, task.tenant) > 0 &&
      blocks_judged_ + now.cache.pool().blocks() / kRoomKept > blocks_left_) {
    return Deferred{&task, WaitReason::kTenant};
  }
  tokens_behind = task.length() - match.tokens;
  return std::nullopt;
}

std::optional<WaitReason> Planner::reached_limit(const SchedulerView& now,
                                                 const SequenceTask& task) const {
  const Tenant& tenant = now.tenants[task.tenant];
  const std::uint32_t id = task.tenant.value();
  const auto above = [](std::uint64_t limit, std::uint64_t value) {
    return limit > 0 && value > limit;
  };
  // The tenant's limits never hold back a tenant without a running sequence: the request was within
  // the limits when the server accepted it, and the limits may have been lowered since.
  if (has_a_slot(now, task.tenant) &&
      (above(tenant.limits.sequences_running,
             tenant.sequences_running + sequences_admitted_[id] + task.sequence_count) ||
       above(tenant.limits.kv_tokens,
             tenant.kv_tokens_held + kv_tokens_admitted_[id] + task.length()))) {
    return WaitReason::kTenant;
  }
  if (task.sequence_count + slots_kept(now, task.tenant) > sequences_left_)
    return WaitReason::kTenant;
  const ContextClass& context_class = options_.context_classes[task.context_class];
  const ClassUse& use = classes_[task.context_class];
  // The class's share never holds back a class without a running sequence.
  if (context_class.share >= 1.0 || use.sequences == 0) return std::nullopt;
  const std::uint64_t blocks = blocks_at_peak(task, task.length());
  if (use.sequences + task.sequence_count >
          ContextClasses::part(context_class, options_.sequences_max) ||
      use.blocks + blocks > ContextClasses::part(context_class, now.cache.pool().blocks())) {
    return WaitReason::kContextClass;
  }
  return std::nullopt;
}

bool Planner::has_a_slot(const SchedulerView& now, TenantId id) const {
  return now.tenants[id].sequences_running + sequences_admitted_[id.value()] > 0;
}

// Returns how many slots the tenant must leave to active tenants without a slot. A tenant without a
// slot leaves none but those that were given up for another.
std::uint64_t Planner::slots_kept(const SchedulerView& now, TenantId id) const {
  if (slots_promised_ > 0 && id != promised_to_ && !has_a_slot(now, promised_to_)) {
    return slots_promised_;
  }
  if (!has_a_slot(now, id)) return 0;
  std::uint64_t without = 0;
  for (std::uint32_t i = 0; i < now.tenants.size(); ++i) {
    without += is_active(now, TenantId(i)) && !has_a_slot(now, TenantId(i)) ? 1 : 0;
  }
  return std::min<std::uint64_t>(without, options_.sequences_max / kSlotsKept);
}

// Returns true when a running sequence, or one that this plan admits, will publish at least a block
// more of this sequence's prefix than the cache has. A sequence waits only for others that are at
// least as urgent.
bool Planner::prefix_in_work(const SchedulerView& now, const SequenceTask& task,
                             std::uint64_t tokens_matched) const {
  if (task.compute_whole_prompt) return false;
  const std::span<const TokenId> wanted = task.scope->lookup().findable(task.tokens);
  const auto is_ahead = [&](const SequenceTask& other) {
    if (other.priority > task.priority || !other.scope->same_region(*task.scope)) return false;
    const std::uint64_t shared =
        shared_prefix(wanted, std::span(other.tokens).first(other.tokens_to_publish()));
    return shared >= tokens_matched + demand_.block_tokens && other.tokens_computed() < shared;
  };
  for (const std::size_t i : prefills_) {
    if (decisions_[i] != Decision::kPreempted && is_ahead(*now.running[i])) return true;
  }
  return std::any_of(plan_.admit.begin(), plan_.admit.end(),
                     [&](const Admission& admission) { return is_ahead(*admission.task); });
}

// Returns the blocks of a task that has `computed` tokens, until it has `tokens`: behind a window
// there is no longer chunk than what is left to compute.
std::uint64_t Planner::blocks_at_peak(const SequenceTask& task, std::uint64_t tokens,
                                      std::uint64_t computed) const {
  BlockDemand demand = demand_;
  demand.chunk_tokens_max = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(demand_.chunk_tokens_max, tokens - std::min(tokens, computed)));
  return demand.blocks_at_peak(task.scope->groups(), tokens, task.tokens_held_max(tokens));
}

// Returns how many blocks must be available for the sequence to compute all its known tokens.
std::uint64_t Planner::blocks_to_run(const SchedulerView& now, const SequenceTask& task,
                                     const kv::Match& match) const {
  std::uint64_t held = 0;
  for (const kv::memory::AttentionSpec& spec : task.scope->groups()) {
    const kv::memory::BlocksKept kept(spec, match.tokens, demand_.block_tokens);
    held += kept.count(0, match.nodes.size() + (match.partial ? 1 : 0));
  }
  const std::uint64_t peak = blocks_at_peak(task, task.length(), match.tokens);
  return now.cache.blocks_needed(*task.scope, match, match.tokens) +
         (peak > held ? peak - held : 0);
}

// Returns how many blocks a running sequence will still take, for the rest of its known tokens and
// its next token.
std::uint64_t Planner::blocks_promised(const SequenceTask& task) const {
  const std::uint64_t peak = blocks_at_peak(task, task.length() + 1, task.tokens_computed());
  const std::uint64_t held = task.sequence->blocks_held();
  return peak - std::min(peak, held);
}

// Returns how many blocks all running sequences will still take.
std::uint64_t Planner::blocks_set_aside(const SchedulerView& now) const {
  std::uint64_t promised = 0;
  for (std::size_t i = 0; i < now.running.size(); ++i) {
    if (decisions_[i] != Decision::kPreempted) promised += blocks_promised(*now.running[i]);
  }
  // The chunks of this plan already took their blocks from the promised ones.
  std::uint64_t taken =
      now.cache.blocks_available() - std::min(now.cache.blocks_available(), blocks_left_);
  return promised - std::min(promised, taken);
}

void Planner::count_admitted(const SequenceTask& task, std::uint64_t blocks) {
  blocks_left_ -= blocks;
  sequences_left_ -= task.sequence_count;
  classes_[task.context_class].sequences += task.sequence_count;
  classes_[task.context_class].blocks += blocks_at_peak(task, task.length());
  sequences_admitted_[task.tenant.value()] += task.sequence_count;
  kv_tokens_admitted_[task.tenant.value()] += task.length();
}

}  // namespace pagoda::sched

// explain() says why a prompt is not fully cached: by what the cache knows, and by the prefixes
// that running sequences are computing.
#include <algorithm>
#include <utility>

#include "sched/scheduler.h"
#include "sched/shared_prefix.h"

namespace pagoda::sched {

kv::Explanation Scheduler::explain(const kv::CacheScope& scope, std::span<const TokenId> prompt,
                                   const kv::Match& match, bool compute_whole_prompt) const {
  kv::Explanation why = cache_.explain(scope, prompt, match);
  if (why.reason == kv::MissReason::kTooShort || why.reason == kv::MissReason::kSharingOff) {
    return why;
  }
  if (compute_whole_prompt) {
    return {.prompt_tokens = prompt.size(),
            .reason = kv::MissReason::kPromptLogprobs,
            .tokens_reachable = why.stops_at()};
  }
  const auto wanted = scope.lookup().findable(prompt);
  for (const SequenceTask* const other : running_) {
    if (!other->scope->same_region(scope)) continue;
    const std::uint64_t shared = shared_prefix(wanted, other->tokens);
    const bool in_work = shared > why.stops_at() && shared >= why.tokens_reachable &&
                         other->tokens_computed() < shared;
    if (!in_work) continue;
    why.reason = kv::MissReason::kInWork;
    why.tokens_reachable = shared;
    why.eviction.reset();
    why.stored.clear();
  }
  return why;
}

std::uint64_t Scheduler::tokens_before(std::int32_t priority) {
  if (!std::exchange(is_listed_, true)) list_queued();
  std::uint64_t tokens = 0;
  for (const QueuedTokens& queued : queued_) {
    if (queued.priority <= priority) tokens += queued.tokens;
  }
  return tokens;
}

void Scheduler::list_queued() {
  // More lookups than these would hold up the engine for who only asks; the rest counts whole.
  constexpr std::size_t kLookupsMax = 64;
  queued_.clear();
  for (const SequenceTask* const task : running_) {
    const std::uint64_t computed = std::min(task->tokens_computed(), task->prompt_tokens);
    if (!task->is_paused()) queued_.push_back({task->priority, task->prompt_tokens - computed});
  }
  std::size_t lookups = 0;
  waiting_.for_each([&](const SequenceTask& task) {
    std::uint64_t cached = 0;
    if (!task.compute_whole_prompt && lookups < kLookupsMax) {
      ++lookups;
      cached = std::min(cache_.match(*task.scope, task.tokens).tokens, task.prompt_tokens);
    }
    queued_.push_back({task.priority, task.prompt_tokens - cached});
  });
  estimate_lookups_ += lookups;
}

}  // namespace pagoda::sched

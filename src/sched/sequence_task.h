// A SequenceTask is one sequence as the scheduler sees it: its known tokens, how many of them are
// computed, and its KV blocks. A request for n sequences has n tasks: the first computes the
// prompt, the others fork from the first.
//
//   Waiting -> Running -> Finished
//      ^          |
//      +- Preempted -> Parked (until its reader goes on) -> Waiting          any -> Finished
//
// A step computes tokens from tokens_launched on. There are no prefill or decode modes: a sequence
// that lags behind its known tokens catches up in chunks, and the logits of its last token give the
// next token. The owner keeps a task alive until the task is finished and no running launch uses
// the task (Scheduler::quiet).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/strong_id.h"
#include "base/token_id.h"
#include "kv/cache.h"
#include "sched/tenant.h"
#include "sched/wait_reason.h"

namespace pagoda::sched {

// Numbers launches from 1; 0 means before the first launch.
using LaunchNumber = std::uint64_t;

enum class TaskState : std::uint8_t { kWaiting, kRunning, kPreempted, kParked, kFinished };

inline constexpr std::int64_t kNoDeadline = std::numeric_limits<std::int64_t>::max();

// PageDrops says how the KV policy of a sequence drops pages, where it selects them and the
// sequence may become long enough.
struct PageDrops {
  kv::KvPolicy policy;
  std::uint64_t prompt_tokens = 0;  // known tokens behind them count as output
  std::uint32_t block_tokens = 16;

  std::uint64_t tokens_until(std::uint64_t tokens) const {
    return policy.tokens_until_drop({prompt_tokens, tokens}, block_tokens);
  }
  // Returns how many tokens are computed before the first page is dropped: the cache publishes no
  // token behind them.
  std::uint64_t tokens_published_max() const {
    if (policy.blocks_dropped({prompt_tokens, prompt_tokens}, block_tokens) > 0) {
      return prompt_tokens;
    }
    const std::uint64_t until = tokens_until(prompt_tokens);
    constexpr auto kAny = std::numeric_limits<std::uint64_t>::max();
    return until > kAny - prompt_tokens ? kAny : prompt_tokens + until;
  }
};

struct SequenceTask {
  // The owner sets these fields before Scheduler::enqueue.
  std::vector<TokenId> tokens;  // the prompt, then the output so far
  std::uint64_t prompt_tokens = 0;
  std::uint64_t tokens_max = 0;      // limit of prompt and output together
  std::uint32_t sequence_count = 1;  // this sequence and those that have yet to fork from it
  std::int32_t priority = 0;         // lower values run first
  TenantId tenant;
  std::int64_t deadline_ns = kNoDeadline;
  bool compute_whole_prompt = false;  // blocks are shared and deduplicated, but none is reused
  std::optional<kv::CacheScope> scope;
  std::optional<PageDrops> drops;
  std::vector<kv::BlockHash> block_hashes;  // of the prompt's full blocks, when blocks are hashed

  // The loader of pages from other tiers sets this flag while the sequence should wait for pages of
  // its prompt.
  bool awaits_load = false;
  // The loader waits for pages until then, whether or not computing would end first.
  std::int64_t load_until_ns = 0;
  // The loader sets load_wants_room when a tier has more of the prompt and the pool had no room for
  // the pages. When the sequence could be admitted, the scheduler sets load_has_room instead.
  bool load_wants_room = false;
  bool load_has_room = false;
  // The loader sets the number of prompt tokens that the pool had when tiers were last asked. If
  // the pool has fewer at admission, the scheduler sets load_has_room, so that tiers are asked
  // again.
  std::uint64_t tokens_seen_in_pool = 0;
  // The owner may set this flag between steps when the client reads the output too slowly: see
  // is_paused().
  bool paused = false;
  // The owner sets the work of the grammar for the last token (Matcher::token_work).
  std::uint64_t grammar_work = 0;

  // The scheduler sets these fields.
  TaskState state = TaskState::kWaiting;
  WaitReason waits_for = WaitReason::kNew;
  std::uint64_t arrival = 0;            // position in the order of enqueueing
  std::uint64_t tokens_launched = 0;    // tokens computed or being computed
  std::uint32_t samples_in_flight = 0;  // tokens sampled by launches that are not collected
  std::uint32_t drafts_in_flight = 0;   // draft tokens in a launch that is not collected
  LaunchNumber last_launch = 0;
  std::uint64_t tokens_at_admission = 0;  // known tokens when it last started to run
  std::optional<kv::Sequence> sequence;
  std::size_t context_class = 0;
  std::uint64_t class_blocks = 0;     // blocks counted against the context class
  std::uint32_t times_passed = 0;     // by other sequences, while this one did not fit
  std::uint64_t blocks_wanted = 0;    // blocks that were needed when the sequence last did not fit
  std::uint64_t look_again_step = 0;  // next examination, unless blocks_wanted are free earlier
  std::uint32_t prefix_waits = 0;     // steps spent waiting for another sequence's prefix

  // Statistics.
  std::uint32_t preemptions = 0;
  std::uint64_t tokens_cached = 0;  // prompt tokens reused at the first admission
  std::uint64_t prompt_tokens_computed = 0;
  std::uint64_t prompt_tokens_written = 0;  // computed for the first time, as far as the cache knew
  std::uint64_t prompt_tokens_seen = 0;     // up to there they were in the cache or are computed
  kv::Explanation explanation;  // why no more prompt tokens were reused at the first admission

  // Returns how many tokens are known or being sampled.
  std::uint64_t length() const { return tokens.size() + samples_in_flight; }
  // A paused sequence gets no tokens, and keeps its slot and its blocks only while nobody waits for
  // them. The pause begins behind the first token since admission, so that whoever is preempted for
  // it has got on.
  bool is_paused() const { return paused && tokens.size() > tokens_at_admission; }
  // Returns how many tokens can be launched now; 0 for a paused sequence. The last of tokens_max
  // tokens is never computed, a leader waits until its followers have forked, and a sequence waits
  // until it is known which of its draft tokens are its own.
  std::uint64_t tokens_behind() const {
    const bool forks_first = sequence_count > 1 && samples_in_flight > 0;
    const bool may_run = length() < tokens_max && !forks_first && drafts_in_flight == 0 &&
                         !is_paused() && !awaits_page_drop();
    return may_run ? tokens_behind(tokens_launched) : 0;
  }
  // Returns how many tokens behind the first `computed` may be computed at once: where pages are
  // dropped, no more than see the same pages.
  std::uint64_t tokens_behind(std::uint64_t computed) const {
    const std::uint64_t behind = length() - computed;
    return drops ? std::min(behind, drops->tokens_until(computed)) : behind;
  }
  // Behind the prompt the next tokens see what is left once those before them are computed.
  bool awaits_page_drop() const {
    return drops && tokens_launched >= drops->prompt_tokens && tokens_computed() < tokens_launched;
  }
  // Returns how many tokens a full-attention group holds at most until so many are computed; of a
  // sequence that has dropped pages, from now on.
  std::uint64_t tokens_held_max(std::uint64_t computed) const {
    if (!drops) return computed;
    const kv::KvPolicy& policy = drops->policy;
    if (!sequence || !sequence->has_dropped()) {
      return policy.tokens_held_max({drops->prompt_tokens, computed}, drops->block_tokens);
    }
    const std::uint64_t dropped = policy.tokens_dropped(
        {drops->prompt_tokens, sequence->tokens_computed()}, drops->block_tokens);
    return std::min(computed - dropped,
                    policy.tokens_held_max({.prompt = 0, .tokens = computed}, drops->block_tokens));
  }
  // Returns for how many tokens memory is taken ahead: under a KV policy a limit may be far away.
  std::uint64_t tokens_expected() const {
    constexpr std::uint64_t kBoundedTokens = std::uint64_t{1} << 16;
    return scope->policy().is_full() ? tokens_max : std::min(tokens_max, kBoundedTokens);
  }
  // Returns how many of the known tokens the cache will publish once they are computed.
  std::uint64_t tokens_to_publish() const {
    return drops ? std::min<std::uint64_t>(tokens.size(), drops->tokens_published_max())
                 : tokens.size();
  }
  bool was_preempted() const { return preemptions > 0; }
  std::uint64_t tokens_computed() const { return sequence ? sequence->tokens_computed() : 0; }
};

// Orders sequences of one tenant by priority, then arrival.
inline bool comes_before(const SequenceTask* a, const SequenceTask* b) {
  return a->priority != b->priority ? a->priority < b->priority : a->arrival < b->arrival;
}

}  // namespace pagoda::sched

// One sequence as the scheduler sees it: tokens that are known, how far they are computed, and what
// it holds of the cache. A request for n sequences is n tasks: the first computes the prompt, the
// others fork from it.
//
//   Waiting -> Running -> Finished
//      ^          |
//      +- Preempted          any -> Finished
//
// A step computes tokens [tokens_launched, …). There are no prefill or decode modes: a task that
// lags behind its tokens catches up; the logits of its last token give the next one. Its owner
// keeps a task alive until it is finished and none of its launches is running (`Scheduler::quiet`).
#pragma once

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

// Counts launches from 1; 0 is before the first.
using LaunchNumber = std::uint64_t;

enum class TaskState : std::uint8_t { kWaiting, kRunning, kPreempted, kFinished };

inline constexpr std::int64_t kNoDeadline = std::numeric_limits<std::int64_t>::max();

struct SequenceTask {
  // Set by the owner before Scheduler::enqueue.
  std::vector<TokenId> tokens;  // the prompt, then the answer so far
  std::uint64_t prompt_tokens = 0;
  std::uint64_t tokens_max = 0;      // prompt and answer together
  std::uint32_t sequence_count = 1;  // this one and those that have yet to fork from it
  std::int32_t priority = 0;         // lower runs first
  TenantId tenant;
  std::int64_t deadline_ns = kNoDeadline;
  bool compute_whole_prompt = false;  // shares and deduplicates blocks, but reuses none
  std::optional<kv::CacheScope> scope;
  std::vector<kv::BlockHash> block_hashes;  // of the prompt's whole blocks, when blocks are hashed

  // Set by who brings pages from other tiers: it is worth waiting for some of its prompt.
  bool awaits_load = false;
  // Likewise: a tier has more of its prompt, and there was no room to bring it. When its turn comes
  // the scheduler sets load_has_room instead of starting it.
  bool load_wants_room = false;
  bool load_has_room = false;
  // Likewise: of its prompt the pool had so much when tiers were last asked. Where it has less when
  // the task's turn comes, they are asked again, by load_has_room.
  std::uint64_t tokens_seen_in_pool = 0;
  // Set by the owner at any time between steps: who reads the answer does not keep up. The task
  // keeps its slot and its blocks and gets no tokens.
  bool paused = false;

  // The scheduler's.
  TaskState state = TaskState::kWaiting;
  WaitReason waits_for = WaitReason::kNew;
  std::uint64_t arrival = 0;            // order of enqueueing
  std::uint64_t tokens_launched = 0;    // tokens computed or being computed
  std::uint32_t samples_in_flight = 0;  // tokens chosen by launches that are not collected
  LaunchNumber last_launch = 0;
  std::optional<kv::Sequence> sequence;
  std::size_t context_class = 0;
  std::uint64_t class_blocks = 0;     // counted against its class
  std::uint32_t times_passed = 0;     // by others, while it did not fit
  std::uint64_t blocks_wanted = 0;    // when it last did not fit
  std::uint64_t look_again_step = 0;  // not before this step, unless that much is free
  std::uint32_t prefix_waits = 0;     // steps spent waiting for somebody else's prefix

  // For the record.
  std::uint32_t preemptions = 0;
  std::uint64_t tokens_cached = 0;  // of the prompt, reused when it first ran
  std::uint64_t prompt_tokens_computed = 0;
  kv::Explanation explanation;  // why not more of the prompt was reused when it first ran

  // Tokens that exist or are being chosen.
  std::uint64_t length() const { return tokens.size() + samples_in_flight; }
  // Tokens that can be launched now. The last token of a full answer is never fed, and a prompt
  // that others fork from waits for them.
  std::uint64_t tokens_behind() const {
    const bool forks_first = sequence_count > 1 && samples_in_flight > 0;
    const bool may_run = length() < tokens_max && !forks_first && !paused;
    return may_run ? length() - tokens_launched : 0;
  }
  std::uint64_t tokens_computed() const { return sequence ? sequence->tokens_computed() : 0; }
};

// The order of tasks that share a tenant: urgency, then arrival.
inline bool comes_before(const SequenceTask* a, const SequenceTask* b) {
  return a->priority != b->priority ? a->priority < b->priority : a->arrival < b->arrival;
}

}  // namespace pagoda::sched

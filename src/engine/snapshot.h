// Snapshot shows the engine at one moment to every other thread.
#pragma once

#include <array>
#include <cstdint>

#include "engine/draft_counts.h"
#include "engine/finish_reason.h"
#include "engine/tiers/load_record.h"
#include "kv/explanation.h"
#include "kv/miss_counters.h"
#include "sched/wait_reason.h"

namespace pagoda::engine {

// LookupCounts count the prefix lookups of requests when they first ran.
struct LookupCounts {
  std::uint64_t whole = 0;  // requests that had all but their last token cached
  std::uint64_t part = 0;
  std::uint64_t none = 0;
  std::uint64_t tokens_asked = 0;
  std::uint64_t tokens_found = 0;
};

// Counters count since the start.
struct Counters {
  std::uint64_t steps = 0;
  std::uint64_t tokens_computed = 0;
  std::uint64_t sequences_stepped = 0;  // sequences that got tokens of a step, added up over steps
  std::uint64_t prompt_tokens = 0;      // tokens of prompts that were computed
  std::uint64_t prompt_tokens_cached = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t context_tokens_longest = 0;  // prompt and output together
  std::uint64_t preemptions = 0;
  std::uint64_t requests_finished = 0;
  std::uint64_t requests_refused = 0;
  kv::MissCounters misses;  // misses of requests that ran
  std::array<std::uint64_t, kFinishReasonCount> sequences_finished{};  // [reason]
  LookupCounts lookups;
  std::array<std::uint64_t, kTiersMax> prompt_tokens_loaded{};  // [tier]
  double load_seconds_waited = 0;  // seconds that requests waited, added up
  double load_seconds_saved = 0;   // an estimate
  DraftCounts drafts;
  AcceptedByPosition drafts_accepted_at{};
  double draft_seconds = 0;             // in which the engine's thread was busy with drafts
  double draft_model_seconds = 0;       // of them: in which it waited for the draft model
  std::uint64_t draft_steps_saved = 0;  // steps that sequences would have needed without drafts
};

// TierTraffic describes the pages that came from a tier.
struct TierTraffic {
  std::uint64_t tokens_loaded = 0;  // tokens of prompts
  double seconds_reading = 0;       // time in which any page was on its way
  double bytes_per_second = 0;      // recent rate; 0: unknown
};

struct Snapshot : Counters {
  std::uint64_t sequences_running = 0;
  std::uint64_t sequences_paused = 0;  // sequences whose readers do not keep up
  std::uint64_t requests_waiting = 0;
  sched::WaitCounts waiting_by_reason{};
  std::uint64_t blocks_all = 0;
  std::uint64_t blocks_free = 0;
  std::uint64_t blocks_idle = 0;  // cached blocks that no sequence holds: reusable until evicted
  std::uint64_t blocks_retained = 0;
  std::uint64_t sessions = 0;        // that are open
  std::uint64_t blocks_evicted = 0;  // since the start
  kv::EvictionCounts blocks_evicted_by_cause{};
  std::uint64_t blocks_deduplicated = 0;       // since the start
  std::uint64_t pages_dropped = 0;             // by KV policies, since the start
  std::array<TierTraffic, kTiersMax> tiers{};  // nearest first
  double prompt_tokens_per_second = 0;         // recent rate of the model; 0: unknown
  double output_tokens_per_second = 0;         // recent rate of all outputs; 0: unknown
  std::uint64_t tier_blocks_skipped = 0;       // blocks that were not written: too many waited
  std::uint64_t bytes_exchanged = 0;           // by ranks, with each other
  bool is_lost = false;  // true: the device is lost, and everything is refused

  std::uint64_t blocks_active() const { return blocks_all - blocks_free - blocks_idle; }
};

}  // namespace pagoda::engine

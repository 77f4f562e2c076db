// The engine at one moment, for everyone who is not its thread.
#pragma once

#include <array>
#include <cstdint>

#include "engine/finish_reason.h"
#include "engine/tiers/load_record.h"
#include "kv/explanation.h"
#include "kv/miss_counters.h"
#include "sched/wait_reason.h"

namespace pagoda::engine {

// What looking for a prompt's beginning gave, when its request first ran.
struct LookupCounts {
  std::uint64_t whole = 0;  // requests: all but the last token was there
  std::uint64_t part = 0;
  std::uint64_t none = 0;
  std::uint64_t tokens_asked = 0;
  std::uint64_t tokens_found = 0;
};

// Since the start.
struct Counters {
  std::uint64_t steps = 0;
  std::uint64_t tokens_computed = 0;
  std::uint64_t sequences_stepped = 0;  // sequences that got rows, added up over steps
  std::uint64_t prompt_tokens = 0;      // of prompts that were computed
  std::uint64_t prompt_tokens_cached = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t context_tokens_longest = 0;  // prompt and output together
  std::uint64_t preemptions = 0;
  std::uint64_t requests_finished = 0;
  std::uint64_t requests_refused = 0;
  kv::MissCounters misses;                                             // of requests that ran
  std::array<std::uint64_t, kFinishReasonCount> sequences_finished{};  // [reason]
  LookupCounts lookups;
  std::array<std::uint64_t, kTiersMax> prompt_tokens_loaded{};  // [tier]
  double load_seconds_waited = 0;                               // by requests, added up
  double load_seconds_saved = 0;                                // an estimate
};

// What came from a tier.
struct TierTraffic {
  std::uint64_t tokens_loaded = 0;  // of prompts
  double seconds_reading = 0;       // in which any page was on its way
  double bytes_per_second = 0;      // of late; 0: unknown
};

struct Snapshot : Counters {
  std::uint64_t sequences_running = 0;
  std::uint64_t sequences_paused = 0;  // of them: their readers do not keep up
  std::uint64_t requests_waiting = 0;
  sched::WaitCounts waiting_by_reason{};
  std::uint64_t blocks_all = 0;
  std::uint64_t blocks_free = 0;
  std::uint64_t blocks_idle = 0;  // cached, and nobody's: reusable until evicted
  std::uint64_t blocks_retained = 0;
  std::uint64_t blocks_evicted = 0;  // since the start
  kv::EvictionCounts blocks_evicted_by_cause{};
  std::uint64_t blocks_deduplicated = 0;       // since the start
  std::array<TierTraffic, kTiersMax> tiers{};  // nearest first
  double prompt_tokens_per_second = 0;         // that the model computes, of late; 0: unknown
  std::uint64_t tier_blocks_skipped = 0;       // not written: too many waited
  bool is_lost = false;                        // what computes is lost: everything is refused

  std::uint64_t blocks_active() const { return blocks_all - blocks_free - blocks_idle; }
};

}  // namespace pagoda::engine

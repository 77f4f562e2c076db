// The engine at one moment, for everyone who is not its thread.
#pragma once

#include <cstdint>

#include "kv/miss_counters.h"

namespace pagoda::engine {

// Since the start.
struct Counters {
  std::uint64_t steps = 0;
  std::uint64_t rows_computed = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t prompt_tokens_cached = 0;
  std::uint64_t answer_tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t requests_finished = 0;
  std::uint64_t requests_refused = 0;
  kv::MissCounters misses;  // of requests that ran
};

struct Snapshot : Counters {
  std::uint64_t answers_running = 0;
  std::uint64_t requests_waiting = 0;
  std::uint64_t blocks_all = 0;
  std::uint64_t blocks_free = 0;
  std::uint64_t blocks_idle = 0;  // cached, and nobody's: reusable until evicted
  std::uint64_t blocks_retained = 0;
  std::uint64_t blocks_evicted = 0;  // since the start
  std::uint64_t blocks_joined = 0;   // since the start
};

}  // namespace pagoda::engine

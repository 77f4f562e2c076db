// A trace through one cache, a request after the other.
#pragma once

#include <cstdint>
#include <functional>

#include "kv/curve.h"
#include "kv/evict/policy.h"
#include "replay/hits.h"
#include "replay/trace.h"

namespace pagoda::replay {

struct CacheRun {
  const kv::EvictionPolicy* policy = &kv::lru_policy();
  std::uint64_t capacity_blocks = 1;
  std::uint64_t block_tokens = 1;   // weighs the hits, nothing else
  kv::CurveStats* curve = nullptr;  // where given, what the cache's live curve says in the end
};

// Requests one after another, each closed before the next opens. One that is longer than the
// capacity counts its hits and leaves its first blocks, as if its tail had been evicted at once.
// unique_blocks: as BlockNumbers counts them. on_progress(touches so far) may be empty.
HitCounts run_cache(const Trace& trace, const CacheRun& run, std::uint64_t unique_blocks,
                    const std::function<void(std::uint64_t touches)>& on_progress);

}  // namespace pagoda::replay

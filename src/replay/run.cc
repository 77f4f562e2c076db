#include "replay/run.h"

#include <optional>

#include "base/assert.h"
#include "replay/trace_cache.h"

namespace pagoda::replay {
namespace {

constexpr std::uint64_t kProgressTouches = 1 << 16;

}  // namespace

HitCounts run_cache(const Trace& trace, const CacheRun& run, std::uint64_t unique_blocks,
                    const std::function<void(std::uint64_t touches)>& on_progress) {
  TraceCache cache(trace, run, unique_blocks);
  HitCounts counts;
  std::uint64_t next_report = kProgressTouches;
  for (const TraceRequest& request : trace.requests) {
    std::optional<TraceCache::Held> held = cache.open(request, request.blocks);
    ASSERT(held.has_value(), "nobody else holds a block");
    cache.commit(request, *held);
    cache.close(*held);
    counts.add(request, held->found, run.block_tokens);
    if (counts.blocks < next_report) continue;
    if (on_progress) on_progress(counts.blocks);
    next_report = counts.blocks + kProgressTouches;
  }
  if (run.curve != nullptr) *run.curve = cache.curve();
  return counts;
}

}  // namespace pagoda::replay

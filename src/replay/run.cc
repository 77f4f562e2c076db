#include "replay/run.h"

#include <algorithm>

#include "base/assert.h"
#include "kv/cache.h"

namespace pagoda::replay {
namespace {

constexpr std::uint64_t kProgressTouches = 1 << 16;
constexpr std::uint64_t kPoolBlocksMax = UINT32_MAX - 1;

// Returns the blocks that were there.
std::uint64_t serve(kv::Cache& cache, const kv::CacheScope& scope,
                    std::span<const TokenId> prompt) {
  const kv::Match match = cache.match(scope, prompt);
  auto opened = cache.open(scope, match, prompt);
  ASSERT(std::holds_alternative<kv::Opened>(opened), "a block of one token is never copied");
  kv::Sequence& sequence = std::get<kv::Opened>(opened).sequence;
  const std::uint64_t kept = std::min<std::uint64_t>(prompt.size() - 1, cache.pool().blocks());
  const auto reserved = cache.reserve(sequence, kept);
  ASSERT(std::holds_alternative<std::vector<kv::Copy>>(reserved), "nobody else holds a block");
  cache.commit(sequence, prompt.subspan(match.tokens, kept - match.tokens));
  cache.close(sequence);
  return match.tokens;
}

}  // namespace

HitCounts run_cache(const Trace& trace, const CacheRun& run, std::uint64_t unique_blocks,
                    const std::function<void(std::uint64_t touches)>& on_progress) {
  // Blocks beyond those that the trace has would stay free.
  const std::uint64_t blocks =
      std::clamp<std::uint64_t>(run.capacity_blocks, 1, std::max<std::uint64_t>(unique_blocks, 1));
  ASSERT(blocks <= kPoolBlocksMax, "traces with more ids were refused");
  kv::CacheOptions options;
  options.blocks = static_cast<std::uint32_t>(blocks);
  options.block_tokens = 1;
  options.block_tokens_weighed =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(run.block_tokens, UINT32_MAX));
  options.policy = run.policy;
  options.live_curve = run.curve != nullptr;
  kv::Cache cache(options);
  const kv::CacheScope scope = cache.scope("", "").value();
  HitCounts counts;
  std::uint64_t next_report = kProgressTouches;
  for (const TraceRequest& request : trace.requests) {
    counts.add(request, serve(cache, scope, trace.prompt(request)), run.block_tokens);
    if (counts.blocks < next_report) continue;
    if (on_progress) on_progress(counts.blocks);
    next_report = counts.blocks + kProgressTouches;
  }
  if (run.curve != nullptr) *run.curve = cache.curve().stats();
  return counts;
}

}  // namespace pagoda::replay

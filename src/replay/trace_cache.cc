#include "replay/trace_cache.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/assert.h"

namespace pagoda::replay {
namespace {

constexpr std::uint64_t kPoolBlocksMax = UINT32_MAX - 1;

kv::CacheOptions options_of(const CacheRun& run, std::uint64_t unique_blocks) {
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
  return options;
}

}  // namespace

TraceCache::TraceCache(const Trace& trace, const CacheRun& run, std::uint64_t unique_blocks)
    : trace_(trace),
      cache_(std::make_unique<kv::Cache>(options_of(run, unique_blocks))),
      scope_(cache_->scope("", "").value()) {}

std::uint64_t TraceCache::found(const TraceRequest& request) const {
  return cache_->match(scope_, trace_.prompt(request)).tokens;
}

std::optional<TraceCache::Held> TraceCache::open(const TraceRequest& request,
                                                 std::uint64_t blocks) {
  // A match leaves a prompt's last token: here that is the entry behind the blocks.
  const std::span<const TokenId> prompt = trace_.prompt(request).first(blocks + 1);
  const kv::Match match = cache_->match(scope_, prompt);
  const std::uint64_t kept = std::min(blocks, this->blocks());
  if (cache_->blocks_needed(scope_, match, kept) > cache_->blocks_available()) return std::nullopt;
  auto opened = cache_->open(scope_, match, prompt);
  ASSERT(std::holds_alternative<kv::Opened>(opened), "a block of one token is never copied");
  Held held = {.sequence = std::move(std::get<kv::Opened>(opened).sequence),
               .found = match.tokens,
               .kept = kept};
  const auto reserved = cache_->reserve(held.sequence, kept);
  ASSERT(std::holds_alternative<std::vector<kv::Copy>>(reserved), "the room was asked for");
  return held;
}

void TraceCache::commit(const TraceRequest& request, Held& held) {
  cache_->commit(held.sequence, trace_.prompt(request).subspan(held.found, held.kept - held.found));
}

}  // namespace pagoda::replay

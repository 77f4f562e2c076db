#include "engine/backends/backend_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/byte_size.h"
#include "base/random.h"

namespace pagoda::engine {
namespace {

// Evictions that are remembered: as many as there are blocks, in 147 KB to 9.4 MB.
std::uint32_t eviction_records_for(std::uint64_t blocks) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 4096, 1u << 18));
}

}  // namespace

kv::CacheOptions cache_options(const BackendOptions& options, std::uint32_t blocks,
                               const std::vector<kv::memory::AttentionSpec>& groups) {
  const auto blocks_of = [&](double share) {
    return static_cast<std::uint64_t>(share * static_cast<double>(blocks));
  };
  return {.blocks = blocks,
          .block_tokens = options.block_tokens,
          .groups = groups,
          .policy = options.kv_eviction,
          .hash_seed = fresh_seed(),
          .quota_blocks_private = blocks_of(options.quota_share),
          .quota_blocks_public = blocks_of(options.quota_share_public),
          .retain_blocks_max = blocks_of(options.retain_share),
          .eviction_records_max = eviction_records_for(blocks),
          .hash_blocks = options.hash_blocks,
          .live_curve = options.live_curve,
          .events = options.kv_events,
          .share = options.prefix_caching};
}

Result<std::uint64_t> fitting_context(const sched::BlockDemand& demand, std::uint64_t asked,
                                      std::uint32_t blocks, std::uint64_t kv_bytes) {
  const auto fits = [&](std::uint64_t tokens) { return demand.blocks_alone(tokens) <= blocks; };
  if (fits(asked)) return asked;
  std::uint64_t low = 1;
  std::uint64_t high = asked;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  if (low >= 2) return low;
  return Error{
      ErrorCode::kOutOfRange,
      fmt::format("--kv-cache-memory-bytes: {} are {} blocks, the shortest request needs "
                  "{}",
                  format_byte_size(static_cast<double>(kv_bytes)), blocks, demand.blocks_alone(2))};
}

}  // namespace pagoda::engine

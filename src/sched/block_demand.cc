#include "sched/block_demand.h"

#include <algorithm>

namespace pagoda::sched {

std::uint64_t BlockDemand::blocks_at_peak(std::uint64_t tokens) const {
  const std::uint64_t whole = (tokens + block_tokens - 1) / block_tokens;
  std::uint64_t blocks = 0;
  for (const kv::memory::AttentionSpec& spec : groups) {
    if (spec.window == 0) {
      blocks += whole;
      continue;
    }
    // A window group keeps the window - 1 tokens before the chunk's first token, and the chunk.
    // Both ends may lie inside a block, hence one block more.
    const std::uint64_t seen = spec.window - 1 + chunk_tokens_max;
    blocks += std::min(whole, (seen + block_tokens - 1) / block_tokens + 1);
  }
  return blocks;
}

}  // namespace pagoda::sched

#include "sched/block_demand.h"

#include <algorithm>

#include "sched/largest_fitting.h"

namespace pagoda::sched {

std::uint64_t BlockDemand::blocks_at_peak(Groups groups, std::uint64_t tokens,
                                          std::uint64_t tokens_held) const {
  const std::uint64_t whole = (tokens + block_tokens - 1) / block_tokens;
  const std::uint64_t held = (tokens_held + block_tokens - 1) / block_tokens;
  std::uint64_t blocks = 0;
  for (const kv::memory::AttentionSpec& spec : groups) {
    if (spec.window == 0) {
      blocks += held;
      continue;
    }
    // A window group keeps the window - 1 tokens before the chunk's first token, and the chunk.
    // Both ends may lie inside a block, hence one block more.
    const std::uint64_t seen = spec.window - 1 + chunk_tokens_max;
    blocks += std::min(
        whole, (seen + block_tokens - 1) / block_tokens + 1 + spec.sink_blocks(block_tokens));
  }
  return blocks;
}

std::uint64_t BlockDemand::tokens_alone(Groups groups, std::uint64_t tokens_max,
                                        std::uint64_t blocks) const {
  return largest_fitting(
      tokens_max, [&](std::uint64_t tokens) { return blocks_alone(groups, tokens) <= blocks; });
}

std::uint64_t BlockDemand::bounded_tokens_alone(Groups groups, std::uint64_t tokens_max,
                                                std::uint64_t blocks) const {
  constexpr std::uint64_t kEndless = std::uint64_t{1} << 40;
  return largest_fitting(tokens_max, [&](std::uint64_t tokens) {
    // One window stands for sinks and window, which may take a block more in every group.
    const kv::KvPolicy policy = {.window = static_cast<std::uint32_t>(tokens), .sinks = 0};
    return blocks_alone(policy.of(groups), kEndless) + groups.size() <= blocks;
  });
}

}  // namespace pagoda::sched

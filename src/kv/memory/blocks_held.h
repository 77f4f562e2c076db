// How many blocks of a cache group a sequence holds at most.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kv/memory/cache_groups.h"

namespace pagoda::kv::memory {

// Returns the most blocks that a sequence which grew token by token to `tokens` held at once: all,
// or those of the sinks and of a window of tokens, whose ends may both lie inside a block.
constexpr std::uint64_t blocks_held(AttentionSpec spec, std::uint64_t tokens,
                                    std::uint32_t block_tokens) {
  const std::uint64_t whole = (tokens + block_tokens - 1) / block_tokens;
  if (spec.window == 0) return whole;
  const std::uint64_t before = std::uint64_t{spec.window} - 1;
  const std::uint64_t of_window = (before + block_tokens - 1) / block_tokens + 1;
  return std::min(whole, of_window + spec.sink_blocks(block_tokens));
}

}  // namespace pagoda::kv::memory

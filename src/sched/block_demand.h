// BlockDemand computes how many KV blocks a sequence holds at its peak. A full-attention group
// holds the blocks of all tokens; a sliding-window group holds the blocks that the tokens of one
// chunk read and write.
#pragma once

#include <cstdint>
#include <span>

#include "kv/memory/cache_groups.h"

namespace pagoda::sched {

struct BlockDemand {
  std::span<const kv::memory::AttentionSpec> groups;
  std::uint32_t block_tokens = 16;
  std::uint32_t chunk_tokens_max = 1;  // most tokens of one sequence in launches that run

  std::uint64_t blocks_at_peak(std::uint64_t tokens) const;
  // Returns how many blocks the pool must have to serve a request that runs alone: the blocks at
  // its peak, and for each group the block that a partial prefix match is copied from.
  std::uint64_t blocks_alone(std::uint64_t tokens) const {
    return blocks_at_peak(tokens) + groups.size();
  }
};

}  // namespace pagoda::sched

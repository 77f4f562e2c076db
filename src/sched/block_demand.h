// BlockDemand computes how many KV blocks a sequence holds at its peak. A full-attention group
// holds the blocks of all tokens; a sliding-window group holds the blocks that the tokens of one
// chunk read and write, and those of its sinks.
#pragma once

#include <cstdint>
#include <span>

#include "kv/kv_policy.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::sched {

struct BlockDemand {
  using Groups = std::span<const kv::memory::AttentionSpec>;  // under the sequence's KV policy

  std::uint32_t block_tokens = 16;
  std::uint32_t chunk_tokens_max = 1;  // most tokens of one sequence in launches that run

  std::uint64_t blocks_at_peak(Groups groups, std::uint64_t tokens) const {
    return blocks_at_peak(groups, tokens, tokens);
  }
  // The same where full-attention groups hold no more than so many of the tokens.
  std::uint64_t blocks_at_peak(Groups groups, std::uint64_t tokens,
                               std::uint64_t tokens_held) const;
  // Returns how many blocks the pool must have to serve a request that runs alone: the blocks at
  // its peak, and for each group the block that a partial prefix match is copied from.
  std::uint64_t blocks_alone(Groups groups, std::uint64_t tokens) const {
    return blocks_at_peak(groups, tokens) + groups.size();
  }
  // Returns how many tokens, up to tokens_max, such a request may have in a pool of `blocks`; 0:
  // none.
  std::uint64_t tokens_alone(Groups groups, std::uint64_t tokens_max, std::uint64_t blocks) const;
  // The same of a request without an end: sinks and window of its KV policy.
  std::uint64_t bounded_tokens_alone(Groups groups, std::uint64_t tokens_max,
                                     std::uint64_t blocks) const;
};

}  // namespace pagoda::sched

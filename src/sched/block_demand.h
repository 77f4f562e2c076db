// How many blocks a sequence holds at its peak: all of a full group, and of a window group what the
// tokens of one chunk read and write.
#pragma once

#include <cstdint>
#include <span>

#include "kv/memory/cache_groups.h"

namespace pagoda::sched {

struct BlockDemand {
  std::span<const kv::memory::AttentionSpec> groups;
  std::uint32_t block_tokens = 16;
  std::uint32_t chunk_tokens_max = 1;  // tokens of one sequence in one launch

  std::uint64_t blocks_at_peak(std::uint64_t tokens) const;
  // What a pool must have for a request to be served when it is alone: those, beside the block that
  // its prefix may be copied from.
  std::uint64_t blocks_alone(std::uint64_t tokens) const {
    return blocks_at_peak(tokens) + groups.size();
  }
};

}  // namespace pagoda::sched

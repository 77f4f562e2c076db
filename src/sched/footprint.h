// How many blocks a sequence holds at its peak: all of a full slice, and of a window slice what the
// rows of one chunk read and write.
#pragma once

#include <cstdint>
#include <span>

#include "kv/memory/slices.h"

namespace pagoda::sched {

struct Footprint {
  std::span<const kv::memory::LayerReach> slices;
  std::uint32_t block_tokens = 16;
  std::uint32_t chunk_tokens_max = 1;  // rows of one sequence in one launch

  std::uint64_t blocks_at_peak(std::uint64_t tokens) const;
  // What a pool must have for a request to be served when it is alone: those, beside the block that
  // its prefix may be copied from.
  std::uint64_t blocks_alone(std::uint64_t tokens) const {
    return blocks_at_peak(tokens) + slices.size();
  }
};

}  // namespace pagoda::sched

// The upper bounds of a trace's hit rate: an infinite cache, and Belady's cache that knows the
// future.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/block_numbers.h"
#include "replay/hits.h"
#include "replay/trace.h"

namespace pagoda::replay {

class TraceOracle {
 public:
  // Keeps references to both. The numbers are the trace's.
  TraceOracle(const Trace& trace, const BlockNumbers& numbers);

  // Everything seen stays.
  HitCounts infinite(std::uint64_t block_tokens) const;

  // After each request, of what was there and what the request computed, the capacity_blocks that
  // are used again soonest stay; a block may be bypassed. No cache of this capacity hits more: a
  // stay is an interval between two uses, and dropping the one that ends last when too many
  // overlap keeps the most intervals. Of blocks that the same request uses, the deeper goes first,
  // so that what stays is closed under prefixes and every block that stays is a hit.
  HitCounts belady(std::uint64_t capacity_blocks, std::uint64_t block_tokens) const;

 private:
  static constexpr std::uint64_t kNever = UINT64_MAX;

  const Trace& trace_;
  const BlockNumbers& numbers_;
  std::vector<std::uint64_t> next_touch_;  // [entry of Trace::ids]: of the same block, or kNever
};

}  // namespace pagoda::replay

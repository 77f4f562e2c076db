// The values that a cache takes and gives.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/explanation.h"
#include "kv/ids.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/sequence.h"

namespace pagoda::kv {

// Where a match may end.
enum class MatchEnd : std::uint8_t {
  kAnywhere,   // also inside a block, whose first rows are then copied
  kWholeBlock  // between two blocks: for callers who load or compute whole blocks behind it
};

// How much of a prompt the cache holds. A match is valid until the cache changes.
struct Match {
  std::uint64_t tokens = 0;       // at most prompt - 1
  std::vector<NodeId> nodes;      // the whole blocks that are shared
  std::optional<NodeId> partial;  // the node whose first rows are copied
  std::uint32_t partial_tokens = 0;
  SearchWork work;
};

// An instruction to copy the first `tokens` rows of every layer of a page. The source stays as it
// is until copied() reports the copy done.
struct Copy {
  BlockId from;
  BlockId to;
  std::uint32_t tokens = 0;
  std::uint32_t group = 0;
};

// The cache refused: blocks_needed is more than blocks_available, nothing was done and nothing was
// evicted.
struct OutOfBlocks {
  std::uint64_t blocks_needed;
  std::uint64_t blocks_available;
};

struct Opened {
  Sequence sequence;
  std::vector<Copy> copies;  // one per group when the match ends inside a block, else none
};

// Counts since the cache was made.
struct CacheStats {
  std::uint64_t blocks_deduplicated = 0;
  // All blocks that left. Those without a cause were partial blocks that made way for a longer one.
  std::uint64_t blocks_evicted = 0;
  EvictionCounts blocks_evicted_by_cause = {};
  // Pages that running sequences released because their KV policies bound what they keep.
  std::uint64_t pages_dropped = 0;
};

}  // namespace pagoda::kv

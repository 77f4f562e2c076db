// Pages of one waiting prompt on their way into the pool.
//
// A load is a kv::Sequence like that of a running task, but its rows come from stores: opened at
// what the cache has, reserved, read into, committed block by block. What it commits is found by
// everyone, and it holds it all until its sequence has opened it or has ended.
//
//   blocks   0 … first        first … end                       end …
//            the pool has     stores have what is seen of it    nobody has
//
//   Lookup -> Reading -> Held
//      \-> Rested: stores had no more than the pool has
//
// From the front while its sequence waits. Once the sequence computes by itself, from the back:
// block after block until the two meet.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/tiers/page_search.h"
#include "engine/tiers/tier_options.h"
#include "kv/hash/block_hash.h"
#include "kv/sequence.h"
#include "sched/sequence_task.h"

namespace pagoda::engine {

enum class LoadStage : std::uint8_t {
  kNew,     // waits for the space's id, for room, or for another load of the same blocks
  kLookup,  // a store was asked what it has
  kReading,
  kHeld,    // all that comes has come
  kRested,  // nothing was to come; stores are asked again if the pool has less when its turn comes
};

enum class BlockStage : std::uint8_t {
  kWanted,
  kReading,
  kHere,
  kFailed,
};

struct LoadBlock {
  BlockStage stage = BlockStage::kWanted;
  std::uint16_t pages_running = 0;
  bool failed = false;     // one of its pages did not come
  bool cancelled = false;  // ... because nobody waited for it any more
};

struct Load {
  sched::SequenceTask* task = nullptr;  // nullptr: its sequence needs it no more
  LoadStage stage = LoadStage::kNew;
  std::vector<kv::BlockHash> hashes;  // of the sequence's whole blocks, its last token's left out
  std::optional<kv::Sequence> sequence;
  std::uint64_t first = 0;
  std::uint64_t end = 0;          // what comes after it does not come, or is of no use
  std::uint64_t committed = 0;    // blocks that everyone finds
  std::vector<LoadBlock> blocks;  // [block - first], some beyond `end`
  bool from_back = false;         // its sequence computes
  bool was_refused = false;       // there was no room: its sequence waits for it no more
  bool has_turn = false;          // its sequence could start, and leaves it its room
  std::uint32_t turns_lost = 0;   // ... which did not suffice
  std::uint64_t next = 0;         // block to be read; from the back, the one after it
  std::uint64_t pages_running = 0;
  std::uint64_t blocks_here = 0;  // of [first, end)

  std::optional<PageSearch> search;  // of this load's hashes; since kLookup
  bool was_cut = false;              // there was no room for all that it found
  kv::StoreTicket lookup = 0;        // that a store has not answered

  std::int64_t arrived_ns = 0;
  std::int64_t last_page_ns = 0;    // when it began, or its last page came
  std::int64_t waits_since_ns = 0;  // that its sequence could have run; 0: it could not
  LoadRecord record;

  LoadBlock& at(std::uint64_t block) { return blocks[block - first]; }
  const LoadBlock& at(std::uint64_t block) const { return blocks[block - first]; }
};

}  // namespace pagoda::engine

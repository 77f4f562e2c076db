// A Load brings the pages of one waiting prompt into the pool.
//
// A load is a kv::Sequence like that of a running task, but stores fill its blocks: it is opened at
// what the cache has, reserved, read into and committed block by block. Every request finds what a
// load commits, and the load holds those blocks until its task has opened them or has ended.
//
//   blocks   0 … first        first … end                       end …
//            the pool has     stores have what is seen of it    nobody has
//
//   Lookup -> Reading -> Held
//      \-> Rested: stores had no more than the pool has
//
// Pages come from the front while the task waits. Once the task computes by itself, they come from
// the back: block after block until the two meet. A **prefetch** loads for a task that never
// computes, in places that the loads of requests leave.
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
  kHeld,    // every page that comes has come
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
  bool failed = false;     // a page of the block did not come
  bool cancelled = false;  // the read was cancelled: nobody waited for the page any more
};

struct Load {
  sched::SequenceTask* task = nullptr;  // nullptr: its task needs it no more
  LoadStage stage = LoadStage::kNew;
  std::vector<kv::BlockHash> hashes;  // of the task's whole blocks, its last token's left out
  std::vector<kv::memory::AttentionSpec> groups;  // which tokens each keeps for the task
  std::optional<kv::Sequence> sequence;
  std::uint64_t first = 0;
  std::uint64_t end = 0;          // blocks from here on do not come, or are of no use
  std::uint64_t committed = 0;    // blocks that every request finds
  std::vector<LoadBlock> blocks;  // [block - first], some beyond `end`
  bool is_prefetch = false;       // its task never computes: the load ends when its reads have
  bool from_back = false;         // true: its task computes
  bool was_refused = false;       // there was no room: its task waits for it no more
  bool has_turn = false;          // its task could start, and leaves the load its room
  std::uint32_t turns_lost = 0;   // turns that did not suffice
  std::uint64_t next = 0;         // block to be read; from the back, the one after it
  std::uint64_t pages_running = 0;
  std::uint64_t blocks_here = 0;  // blocks of [first, end) that have come

  std::optional<PageSearch> search;  // over this load's hashes; since kLookup
  bool was_cut = false;              // there was no room for all blocks that the search found
  kv::StoreTicket lookup = 0;        // a lookup that a store has not answered; 0: none

  std::int64_t arrived_ns = 0;
  std::int64_t last_page_ns = 0;    // when the load began, or its last page came
  std::int64_t waits_since_ns = 0;  // since when its task could have run; 0: it could not
  LoadRecord record;

  LoadBlock& at(std::uint64_t block) { return blocks[block - first]; }
  const LoadBlock& at(std::uint64_t block) const { return blocks[block - first]; }
  // Another server is asked to wait for pages that it still computes.
  bool is_expecting(std::int64_t now_ns) const {
    return stage == LoadStage::kLookup && now_ns < task->load_until_ns;
  }
};

}  // namespace pagoda::engine

// Cache events report changes of the cache to those who keep a copy of its tree outside.
//
// An event is about one page: a whole block, in one group. Applied in order they give the set of
// pages that are there; each says which page by its block hash, so that nothing of the inside
// (numbers of nodes and blocks, which are used again) is needed to follow.
#pragma once

#include <cstdint>

#include "kv/hash/block_hash.h"

namespace pagoda::kv {

enum class CacheEventKind : std::uint8_t {
  kStored,         // a page came: computed, or out of a store
  kRemoved,        // a page left
  kCleared,        // no page is left, but for those stored after this
  kSnapshotBegin,  // who starts here starts with nothing
  kPresent,        // a page that is there, told for the snapshot
  kSnapshotPause,  // the snapshot goes on with another part
  kSnapshotEnd,    // who applied everything since kSnapshotBegin has every page
  kLost,           // the reader was too slow: events are missing here
};

// The tokens of a block come with it where they are told at all: those of a private block stay in
// the cache unless the operator wants them told, its salt always does, and those of a block under a
// KV policy would be taken for KV of the full context.
struct CacheEvent {
  CacheEventKind kind = CacheEventKind::kStored;
  bool is_public = true;  // and of the full context
  std::uint32_t group = 0;
  std::uint64_t sequence = 0;  // +1 an event, lost ones too
  BlockHash hash = {};
  BlockHash parent = {};  // root_hash() at the start of a chain
};

}  // namespace pagoda::kv

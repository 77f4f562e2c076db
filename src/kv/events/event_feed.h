// The cache's events, written into a ring (README: N1 to N5): changes as they happen, and the whole
// tree in parts.
//
// Told: a page was stored or removed, the cache is being cleared. Without a ring nothing happens.
// Partial blocks have no hash, so no event tells of them.
#pragma once

#include <cstdint>

#include "kv/events/event_ring.h"
#include "kv/hash/block_hashes.h"
#include "kv/ids.h"
#include "kv/prefix/prefix_tree.h"

namespace pagoda::kv {

// How far a snapshot has come.
struct SnapshotCursor {
  std::uint32_t next = 0;  // node number
  bool ended = false;
};

class EventFeed {
 public:
  // `ring` may be nullptr. All of them must outlive the feed.
  EventFeed(EventRing* ring, const PrefixTree& tree, const BlockHashes& hashes)
      : ring_(ring), tree_(tree), hashes_(hashes) {}

  void page_stored(NodeId node, std::uint32_t group) {
    if (ring_ != nullptr) push(CacheEventKind::kStored, node, group);
  }
  // The node is whole now: tells of all its pages.
  void node_stored(NodeId node) {
    if (ring_ != nullptr) push_pages(CacheEventKind::kStored, node);
  }
  void page_removed(NodeId node, std::uint32_t group) {
    if (ring_ != nullptr && !is_clearing_) push(CacheEventKind::kRemoved, node, group);
  }

  // Between the two no removal is told. Then one event tells of all that left, and further ones of
  // the pages that are still held.
  void begin_clear() { is_clearing_ = true; }
  void end_clear();

  // Writes a part of a snapshot: the pages of the next nodes, of at most `nodes_max` and no more
  // than the ring has room for. The cache may change between parts; the snapshot is as of its
  // kSnapshotEnd.
  void emit_snapshot(SnapshotCursor& cursor, std::uint32_t nodes_max) const;

 private:
  void push(CacheEventKind kind, NodeId node, std::uint32_t group) const;
  void push_pages(CacheEventKind kind, NodeId node) const;

  EventRing* ring_;  // nullptr: nobody reads events
  const PrefixTree& tree_;
  const BlockHashes& hashes_;
  bool is_clearing_ = false;
};

}  // namespace pagoda::kv

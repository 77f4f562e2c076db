// What others outside are told of the tree: changes as they happen, and all of it in parts.
#include "kv/cache.h"

namespace pagoda::kv {

// Partial blocks have no hash: nothing is told of them.
void Cache::emit_event(CacheEventKind kind, NodeId node, std::uint32_t group) {
  if (events_ == nullptr || !tree_.is_whole(node)) return;
  const bool is_public = tree_.region(node) == kPublic;
  const CacheEvent event = {.kind = kind,
                            .is_public = is_public,
                            .group = group,
                            .sequence = 0,
                            .hash = hashes_[node.value()],
                            .parent = hashes_[tree_.parent(node).value()]};
  const bool tells_tokens = is_public && kind != CacheEventKind::kRemoved;
  events_->push(event, tells_tokens ? tree_.tokens(node) : std::span<const TokenId>());
}

void Cache::emit_page_events(CacheEventKind kind, NodeId node) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (tree_.page(node, group)) emit_event(kind, node, group);
  }
}

// After clear(): one event for all that left, and those for what someone holds.
void Cache::emit_cleared() {
  if (events_ == nullptr) return;
  events_->push({.kind = CacheEventKind::kCleared});
  for (std::uint32_t i = 0; i < tree_.node_numbers(); ++i) {
    if (tree_.is_live(NodeId(i))) emit_page_events(CacheEventKind::kStored, NodeId(i));
  }
}

// Node by node, by number. What changes before its turn is seen as it then is; what changes after
// it is an event like any other: whoever applies both in order has the tree as it is at the end.
void Cache::emit_snapshot(SnapshotCursor& cursor, std::uint32_t nodes_max) {
  if (events_ == nullptr) return;
  if (cursor.next == 0) events_->push({.kind = CacheEventKind::kSnapshotBegin});
  const std::uint64_t room_for_node = std::uint64_t{groups()} + 1;
  for (std::uint32_t nodes = 0; nodes < nodes_max; ++nodes) {
    if (cursor.next >= tree_.node_numbers() || events_->room() < room_for_node) break;
    const NodeId node(cursor.next++);
    if (tree_.is_live(node)) emit_page_events(CacheEventKind::kPresent, node);
  }
  cursor.ended = cursor.next >= tree_.node_numbers();
  events_->push(
      {.kind = cursor.ended ? CacheEventKind::kSnapshotEnd : CacheEventKind::kSnapshotPause});
}

}  // namespace pagoda::kv

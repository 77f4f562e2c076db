// What others outside are told of the tree: changes as they happen, and all of it in slices.
#include "kv/cache.h"

namespace pagoda::kv {

// Open leaves have no name outside: nothing is told of them.
void Cache::announce(EventKind kind, NodeId node, std::uint32_t slice) {
  if (events_ == nullptr || !tree_.is_whole(node)) return;
  const bool is_public = tree_.region(node) == kPublic;
  const Event event = {.kind = kind,
                       .is_public = is_public,
                       .slice = slice,
                       .sequence = 0,
                       .name = names_[node.value()],
                       .parent = names_[tree_.parent(node).value()]};
  const bool tells_tokens = is_public && kind != EventKind::kRemoved;
  events_->push(event, tells_tokens ? tree_.tokens(node) : std::span<const TokenId>());
}

void Cache::announce_pages(EventKind kind, NodeId node) {
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    if (tree_.page(node, slice)) announce(kind, node, slice);
  }
}

// After clear(): one event for all that left, and those for what someone holds.
void Cache::announce_cleared() {
  if (events_ == nullptr) return;
  events_->push({.kind = EventKind::kCleared});
  for (std::uint32_t i = 0; i < tree_.node_numbers(); ++i) {
    if (tree_.is_live(NodeId(i))) announce_pages(EventKind::kStored, NodeId(i));
  }
}

// Node by node, by number. What changes before its turn is seen as it then is; what changes after
// it is an event like any other: whoever applies both in order has the tree as it is at the end.
void Cache::tell_snapshot(SnapshotCursor& cursor, std::uint32_t nodes_max) {
  if (events_ == nullptr) return;
  if (cursor.next == 0) events_->push({.kind = EventKind::kSnapshotBegin});
  const std::uint64_t room_for_node = std::uint64_t{slices()} + 1;
  for (std::uint32_t nodes = 0; nodes < nodes_max; ++nodes) {
    if (cursor.next >= tree_.node_numbers() || events_->room() < room_for_node) break;
    const NodeId node(cursor.next++);
    if (tree_.is_live(node)) announce_pages(EventKind::kPresent, node);
  }
  cursor.ended = cursor.next >= tree_.node_numbers();
  events_->push({.kind = cursor.ended ? EventKind::kSnapshotEnd : EventKind::kSnapshotPause});
}

}  // namespace pagoda::kv

#include "kv/events/event_feed.h"

#include <span>

namespace pagoda::kv {

void EventFeed::push(CacheEventKind kind, NodeId node, std::uint32_t group) const {
  if (!tree_.is_whole(node)) return;
  const bool is_bounded = tree_.is_bounded(node);
  const bool is_public = tree_.region(node) == kPublic && !is_bounded;
  const CacheEvent event = {.kind = kind,
                            .is_public = is_public,
                            .group = group,
                            .sequence = 0,
                            .hash = hashes_.of(node),
                            .parent = hashes_.of(tree_.parent(node))};
  const bool tells_tokens = kind != CacheEventKind::kRemoved && !is_bounded &&
                            (is_public || ring_->tells_private_tokens());
  ring_->push(event, tells_tokens ? tree_.tokens(node) : std::span<const TokenId>());
}

void EventFeed::push_pages(CacheEventKind kind, NodeId node) const {
  for (std::uint32_t group = 0; group < tree_.groups(); ++group) {
    if (tree_.page(node, group)) push(kind, node, group);
  }
}

void EventFeed::end_clear() {
  is_clearing_ = false;
  if (ring_ == nullptr) return;
  ring_->push({.kind = CacheEventKind::kCleared});
  for (std::uint32_t i = 0; i < tree_.node_numbers(); ++i) {
    if (tree_.is_live(NodeId(i))) push_pages(CacheEventKind::kStored, NodeId(i));
  }
}

// The snapshot goes node by node, by number. A node that changes before its turn is told as it then
// is; a change after its turn is an event like any other: a reader who applies both in order has
// the tree as it is at the end.
void EventFeed::emit_snapshot(SnapshotCursor& cursor, std::uint32_t nodes_max) const {
  if (ring_ == nullptr) return;
  if (cursor.next == 0) ring_->push({.kind = CacheEventKind::kSnapshotBegin});
  const std::uint64_t room_for_node = std::uint64_t{tree_.groups()} + 1;
  for (std::uint32_t nodes = 0; nodes < nodes_max; ++nodes) {
    if (cursor.next >= tree_.node_numbers() || ring_->room() < room_for_node) break;
    const NodeId node(cursor.next++);
    if (tree_.is_live(node)) push_pages(CacheEventKind::kPresent, node);
  }
  cursor.ended = cursor.next >= tree_.node_numbers();
  ring_->push(
      {.kind = cursor.ended ? CacheEventKind::kSnapshotEnd : CacheEventKind::kSnapshotPause});
}

}  // namespace pagoda::kv

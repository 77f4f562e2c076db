#include "kv/evict/guards.h"

#include <optional>

#include "base/assert.h"

namespace pagoda::kv {

void Guards::update(NodeId node) {
  const PrefixTree& tree = tree_;
  const std::uint32_t groups = tree.groups();
  for (;;) {
    bool held = false;
    std::uint32_t full = 0;
    std::uint32_t full_idle = 0;
    for (std::uint32_t group = 0; group < groups; ++group) {
      const std::optional<BlockId> page = tree.page(node, group);
      if (!page) continue;
      const bool idle = pool_.state(*page) == BlockState::kIdle;
      held = held || !idle;
      if (rules_.is_window(node, group)) continue;
      ++full;
      full_idle += idle ? 1 : 0;
    }
    Node& guard = nodes_[node.value()];
    const bool was_guarded = guard.is_guarded;
    guard.is_guarded = held || (full > 0 && guard.children > 0);
    blocks_ -= guard.blocks;
    guard.blocks = static_cast<std::uint16_t>(guard.is_guarded ? full_idle : 0);
    blocks_ += guard.blocks;
    if (guard.is_guarded == was_guarded) return;
    node = tree.parent(node);  // roots have no pages and are never guarded
    nodes_[node.value()].children += was_guarded ? -1 : 1;
  }
}

bool Guards::has_full_page(NodeId node) const {
  for (std::uint32_t group = 0; group < tree_.groups(); ++group) {
    if (!rules_.is_window(node, group) && tree_.page(node, group)) return true;
  }
  return false;
}

// Follows the definition: from every held page upwards.
void Guards::check() const {
  std::vector<bool> guarded(nodes_.size(), false);
  for (std::uint32_t i = 0; i < pool_.blocks(); ++i) {
    if (pool_.references(BlockId(i)) == 0) continue;
    std::optional<NodeId> node = pool_.owner(BlockId(i));
    while (node && !guarded[node->value()]) {
      guarded[node->value()] = true;
      node = tree_.parent(*node);
      if (!has_full_page(*node)) break;
    }
  }
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 0; i < pool_.blocks(); ++i) {
    if (pool_.state(BlockId(i)) != BlockState::kIdle) continue;
    const NodeId node = pool_.owner(BlockId(i)).value();
    const bool full = !rules_.is_window(node, rules_.group_of(node, BlockId(i)));
    blocks += full && guarded[node.value()] ? 1 : 0;
  }
  ASSERT(blocks == blocks_, "C5: the count of idle blocks that are guarded is true");
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    ASSERT(nodes_[i].is_guarded == guarded[i], "C5: guarded nodes are known");
  }
}

}  // namespace pagoda::kv

#include "kv/evict/demotion.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace pagoda::kv {

bool is_idle(const PrefixTree& tree, const BlockPool& pool, NodeId node) {
  for (std::uint32_t group = 0; group < tree.groups(); ++group) {
    const std::optional<BlockId> page = tree.page(node, group);
    if (page && pool.state(*page) != BlockState::kIdle) return false;
  }
  return true;
}

std::vector<NodeId> nodes_to_demote(const PrefixTree& tree, const BlockPool& pool,
                                    const Evictor& evictor, std::vector<NodeId> nodes,
                                    SaltId region) {
  PrefixTree::ResidentChildren below = tree.resident_children(nodes.back(), region);
  while (below.count == 1) {
    nodes.push_back(below.first);
    below = tree.resident_children(nodes.back(), region);
  }
  std::size_t first = nodes.size();
  const auto goes = [&](NodeId node) {
    const std::uint32_t others = first == nodes.size() ? 0 : 1;  // the child that goes before it
    return tree.region(node) == region && tree.resident_children(node, region).count == others &&
           is_idle(tree, pool, node) && !evictor.is_retained_by_others(node);
  };
  while (first > 0 && goes(nodes[first - 1])) --first;
  nodes.erase(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(first));
  return nodes;
}

}  // namespace pagoda::kv

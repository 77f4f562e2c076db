// Whole blocks for who keeps pages outside: held while they are copied out, and which of them leave
// next or were used last.
#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "base/assert.h"
#include "kv/cache.h"

namespace pagoda::kv {

std::optional<BlockId> Cache::pin_page(NodeId node, const BlockHash& hash, std::uint32_t group) {
  if (node.value() >= hashes_.size() || !tree_.is_live(node) || !tree_.is_whole(node) ||
      hashes_[node.value()] != hash || salts_.is_retired(tree_.region(node))) {
    return std::nullopt;
  }
  const std::optional<BlockId> page = tree_.page(node, group);
  if (!page) return std::nullopt;
  hold(*page);
  ++pins_[page->value()];
  return page;
}

void Cache::unpin_page(BlockId block) {
  ASSERT(pins_[block.value()] > 0, "a pin ends once");
  --pins_[block.value()];
  release(block, pool_.last_use(block));
}

std::vector<NodeId> Cache::eviction_candidates(std::size_t nodes_max) {
  std::vector<NodeId> leaving;
  std::vector<NodeId> spared;
  std::vector<BlockId> looked_at;
  std::unordered_set<NodeId> known;
  const std::size_t look_max = 2 * nodes_max * groups();
  while (leaving.size() < nodes_max && looked_at.size() < look_max) {
    const std::optional<BlockId> block = next_victim(/*may_spare=*/false);
    if (!block) break;
    looked_at.push_back(*block);
    const NodeId node = pool_.owner(*block).value();
    if (!tree_.is_whole(node) || !known.insert(node).second) continue;
    const bool by_order = ordered_ && !victim_by_quota_ && !is_retained(node);
    const bool stays = by_order && ordered_->order().spares(*block);
    (stays ? spared : leaving).push_back(node);
  }
  for (const BlockId block : looked_at) queue_if_evictable(block);
  spared.resize(std::min(spared.size(), nodes_max - leaving.size()));
  leaving.insert(leaving.end(), spared.begin(), spared.end());
  return leaving;
}

std::vector<NodeId> Cache::whole_blocks() const {
  struct Used {
    Tick until;
    std::uint32_t depth;
    NodeId node;
  };
  std::vector<Used> used;
  for (std::uint32_t i = 0; i < tree_.node_numbers(); ++i) {
    const NodeId node(i);
    if (!tree_.is_live(node) || !tree_.is_whole(node) || tree_.pages(node) == 0) continue;
    if (salts_.is_retired(tree_.region(node))) continue;
    Tick until = 0;
    for (std::uint32_t group = 0; group < groups(); ++group) {
      const std::optional<BlockId> page = tree_.page(node, group);
      if (!page) continue;
      const bool in_use = pool_.references(*page) > pins_[page->value()];
      until = std::max(until, in_use ? now_ + 1 : pool_.last_use(*page));
    }
    used.push_back({until, tree_.depth(node), node});
  }
  std::sort(used.begin(), used.end(), [](const Used& a, const Used& b) {
    return std::tie(b.until, a.depth, a.node) < std::tie(a.until, b.depth, b.node);
  });
  std::vector<NodeId> nodes;
  nodes.reserve(used.size());
  for (const Used& one : used) nodes.push_back(one.node);
  return nodes;
}

}  // namespace pagoda::kv

// Says which pages may be evicted, whatever the policy (README: E1 to E3). A value of a few
// pointers: each part that asks often has its own copy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kv/blocks/block_pool.h"
#include "kv/ids.h"
#include "kv/memory/cache_groups.h"
#include "kv/prefix/prefix_tree.h"

namespace pagoda::kv {

class EvictionRules {
 public:
  // All of them must outlive the rules.
  EvictionRules(const BlockPool& pool, const PrefixTree& tree,
                std::span<const memory::AttentionSpec> groups)
      : pool_(pool), tree_(tree), groups_(groups) {}

  // Does the group keep a window of tokens where the node is: by itself, or by the policy there?
  bool is_window(NodeId node, std::uint32_t group) const {
    return groups_[group].window != 0 || tree_.is_bounded(node);
  }

  // The group in which the block is the node's page.
  std::uint32_t group_of(NodeId node, BlockId block) const {
    std::uint32_t group = 0;
    while (tree_.page(node, group) != block) ++group;
    return group;
  }

  // May the block be evicted now? A page of a window group may go alone when nobody holds it. A
  // page of a full group goes with all pages of its node: when nobody holds any of them and no
  // child has a page.
  bool is_evictable(BlockId block) const {
    if (pool_.state(block) != BlockState::kIdle) return false;
    const NodeId node = pool_.owner(block).value();
    if (is_window(node, group_of(node, block))) return true;
    if (tree_.children_resident(node) != 0) return false;
    for (std::uint32_t group = 0; group < tree_.groups(); ++group) {
      const std::optional<BlockId> page = tree_.page(node, group);
      if (page && pool_.state(*page) != BlockState::kIdle) return false;
    }
    return true;
  }

 private:
  const BlockPool& pool_;
  const PrefixTree& tree_;
  std::span<const memory::AttentionSpec> groups_;
};

}  // namespace pagoda::kv

// Which idle pages cannot be evicted for the sake of pages that are held (README: E6).
//
// Told: a node was added; a page of a node came, went, was held or was released. Answers: how many
// idle blocks are guarded, so that the others are what a request can get. 8 bytes a node.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/blocks/block_pool.h"
#include "kv/evict/eviction_rules.h"
#include "kv/ids.h"
#include "kv/prefix/prefix_tree.h"

namespace pagoda::kv {

class Guards {
 public:
  // Memory for so many nodes is taken at once. All of them must outlive the guards.
  Guards(std::size_t nodes, const BlockPool& pool, const PrefixTree& tree,
         const EvictionRules& rules)
      : pool_(pool), tree_(tree), rules_(rules) {
    nodes_.reserve(nodes);
  }

  void node_added(NodeId node) {
    if (node.value() >= nodes_.size()) nodes_.resize(node.value() + 1);
  }
  // A page of the node came, went, was held or was released. A parent is looked at only when its
  // own guard may change: holding from head to tail and releasing from tail to head take one step a
  // page.
  void update(NodeId node);

  // The node lost a page: one that is not guarded stays so, for none of its pages is held.
  void page_removed(NodeId node) {
    if (is_guarded(node)) update(node);
  }

  bool is_guarded(NodeId node) const { return nodes_[node.value()].is_guarded; }
  // Idle blocks that stay.
  std::uint64_t blocks() const { return blocks_; }

  // Stops the program when guards and their count are not as defined (README: C5). Linear.
  void check() const;

 private:
  struct Node {
    std::uint32_t children = 0;  // that are guarded
    std::uint16_t blocks = 0;    // of the node that are idle and stay
    bool is_guarded = false;
  };
  static_assert(sizeof(Node) == 8);

  bool has_full_page(NodeId node) const;

  const BlockPool& pool_;
  const PrefixTree& tree_;
  EvictionRules rules_;
  std::vector<Node> nodes_;  // [node]
  std::uint64_t blocks_ = 0;
};

}  // namespace pagoda::kv

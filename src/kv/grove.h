// A part of the prefix tree: some nodes and all nodes above them. It is how the tree is looked at
// from the pool's blocks at bounded cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "kv/prefix/prefix_tree.h"

namespace pagoda::kv {

// Numbers are indices into `nodes`.
struct Grove {
  static constexpr std::size_t kNone = SIZE_MAX;
  struct Seen {
    NodeId node;
    SaltId region;
    std::size_t parent = kNone;
    std::uint64_t blocks = 0;              // of all below, too
    std::span<std::size_t> children = {};  // of `order`
  };

  std::vector<Seen> nodes;
  std::vector<std::size_t> order;  // siblings stand together

  // A branch is a stretch of nodes of one region without a fork.
  bool goes_on(std::size_t at) const {
    const Seen& seen = nodes[at];
    return seen.children.size() == 1 && nodes[seen.children.front()].region == seen.region;
  }
  // Returns the last node of the branch that `at` is part of.
  std::size_t end_of(std::size_t at) const {
    while (goes_on(at)) at = nodes[at].children.front();
    return at;
  }
};

// Walks from every block that is looked at upwards until it meets a node that was seen before: a
// tree knows parents at once, and children only by a search.
class GroveWalk {
 public:
  GroveWalk(const PrefixTree& tree, std::size_t nodes_max) : tree_(tree), nodes_max_(nodes_max) {
    numbers_.reserve(nodes_max);
  }

  void add(NodeId node);
  // A path is never cut short: the tree's depth may be seen beyond the limit.
  bool full() const { return grove_.nodes.size() >= nodes_max_; }

  Grove finish();

 private:
  const PrefixTree& tree_;
  std::size_t nodes_max_;
  std::unordered_map<std::uint32_t, std::size_t> numbers_;  // of nodes
  Grove grove_;
};

}  // namespace pagoda::kv

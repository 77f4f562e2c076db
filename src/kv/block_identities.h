// The identities of the cache's blocks (block_identity.h): how a block is known again after it left
// (README: E4a).
//
// Told: a node was added, a node is whole. Answers: the identity of a node, and that of tokens
// below a node, whether they are in the tree or not. 8 bytes a node; none when nobody reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "kv/block_identity.h"
#include "kv/ids.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/salt_table.h"

namespace pagoda::kv {

class BlockIdentities {
 public:
  struct Options {
    bool enabled = false;
    std::uint64_t hash_seed = 0;
    std::size_t nodes = 0;  // memory for so many is taken at once
  };

  // The tree and the salts must outlive the identities.
  BlockIdentities(const Options& options, const PrefixTree& tree, const SaltTable& salts)
      : options_(options), tree_(tree), salts_(salts) {
    if (options_.enabled) identities_.reserve(options_.nodes);
  }

  bool enabled() const { return options_.enabled; }

  // Makes room for the node, a root or a block.
  void node_added(NodeId node) {
    if (!options_.enabled || node.value() < identities_.size()) return;
    identities_.resize(node.value() + 1);
  }
  // The node is whole now: its tokens are final.
  void node_sealed(NodeId node) {
    if (!options_.enabled) return;
    identities_[node.value()] = below(tree_.parent(node), tree_.region(node), tree_.tokens(node));
  }

  // The identity of a root or of a whole block.
  std::uint64_t of(NodeId node) const {
    return tree_.is_root(node) ? root_identity(options_.hash_seed, node)
                               : identities_[node.value()];
  }
  // The identity of these tokens in a region, below a root or a whole block.
  std::uint64_t below(NodeId parent, SaltId region, std::span<const TokenId> tokens) const {
    return block_identity(of(parent), salts_.key(region), tokens);
  }

 private:
  Options options_;
  const PrefixTree& tree_;
  const SaltTable& salts_;
  std::vector<std::uint64_t> identities_;  // [node], set for whole blocks
};

}  // namespace pagoda::kv

// The hashes of the cache's whole blocks.
//
// Told: a root or a node was added, a node is whole. Answers: the hash of a node. A whole block is
// hashed as the caller who opened its sequence computed it, or here when the chain above the block
// is not the one that the caller had in mind. 32 bytes a node; none when blocks are not hashed.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kv/hash/block_hash.h"
#include "kv/ids.h"
#include "kv/lookup_scope.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/salt_table.h"

namespace pagoda::kv {

class BlockHashes {
 public:
  struct Options {
    bool enabled = false;
    bool indexed = false;   // find() knows the nodes of hashes
    std::size_t nodes = 0;  // memory for so many is taken at once
  };

  // The tree and the salts must outlive the hashes.
  BlockHashes(const Options& options, const PrefixTree& tree, const SaltTable& salts)
      : options_(options), tree_(tree), salts_(salts) {
    if (options_.enabled) hashes_.reserve(options_.nodes);
  }

  bool enabled() const { return options_.enabled; }

  // A namespace begins, whose blocks have the adapter in their hashes (empty: none).
  void root_added(NodeId root, std::string_view adapter);
  // Makes room for the node.
  void node_added(NodeId node) {
    if (!options_.enabled || node.value() < hashes_.size()) return;
    hashes_.resize(node.value() + 1);
  }
  // The node is whole now, block `block` of a sequence that was opened in `scope` with the hashes
  // `computed` of its prompt's whole blocks, or without any.
  void node_sealed(NodeId node, std::uint64_t block, const LookupScope& scope,
                   std::span<const BlockHash> computed);

  // The hash of a root or of a whole block; hashes must be enabled.
  const BlockHash& of(NodeId node) const { return hashes_[node.value()]; }
  // Is there a node of this number with this hash? The number may be out of date.
  bool is_hash_of(NodeId node, const BlockHash& hash) const {
    return node.value() < hashes_.size() && hashes_[node.value()] == hash;
  }
  // The node that got this hash last. It may have left the tree since.
  std::optional<NodeId> find(const BlockHash& hash) const {
    const auto found = nodes_.find(hash);
    return found == nodes_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  struct IndexHash {
    std::size_t operator()(const BlockHash& hash) const {
      std::size_t bits = 0;
      std::memcpy(&bits, hash.digest.data(), sizeof bits);
      return bits;
    }
  };

  void set(NodeId node, const BlockHash& hash);

  Options options_;
  const PrefixTree& tree_;
  const SaltTable& salts_;
  std::vector<BlockHash> hashes_;  // [node]
  // At most one hash a node; empty unless indexed.
  std::unordered_map<BlockHash, NodeId, IndexHash> nodes_;
  std::map<NodeId, std::string> adapters_;  // of roots that have one
  BlockHasher hasher_;                      // last: it is large
};

}  // namespace pagoda::kv

#include "kv/hash/block_hashes.h"

#include "base/assert.h"

namespace pagoda::kv {

void BlockHashes::root_added(NodeId root, std::string_view adapter) {
  if (!options_.enabled) return;
  node_added(root);
  hashes_[root.value()] = root_hash();
  if (!adapter.empty()) adapters_.insert_or_assign(root, std::string(adapter));
}

void BlockHashes::node_sealed(NodeId node, std::uint64_t block, const LookupScope& scope,
                              std::span<const BlockHash> computed) {
  if (!options_.enabled) return;
  const NodeId parent = tree_.parent(node);
  const bool salt_enters = tree_.region(node) != tree_.region(parent);
  const std::uint64_t salt_block = scope.public_tokens / tree_.block_tokens();
  const bool as_computed = block < computed.size() &&
                           (block == 0 || hashes_[parent.value()] == computed[block - 1]) &&
                           (scope.salt == kPublic || salt_enters == (block == salt_block));
  if (as_computed) {
    return set(node, computed[block]);
  }
  const auto adapter = adapters_.find(scope.root);
  const ExtraKeys extra = {
      .adapter = adapter == adapters_.end() ? std::string_view() : adapter->second,
      .salt = salt_enters ? salts_.text(scope.salt) : std::string_view()};
  const auto hash = hasher_.hash(hashes_[parent.value()], tree_.tokens(node), extra);
  ASSERT(hash.ok(), "block size, adapter and salt are within the hasher's limits");
  set(node, hash.value());
}

// A number that stands for another node now takes its old hash out of the index.
void BlockHashes::set(NodeId node, const BlockHash& hash) {
  BlockHash& kept = hashes_[node.value()];
  if (options_.indexed) {
    const auto before = nodes_.find(kept);
    if (before != nodes_.end() && before->second == node) nodes_.erase(before);
    nodes_.insert_or_assign(hash, node);
  }
  kept = hash;
}

}  // namespace pagoda::kv

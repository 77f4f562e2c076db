// Where a prefix is matched: the walk down the tree along a prompt.
//
// A lookup sees public blocks and those of its own salt (README: I1, I2), and never looks at
// others. It reads the tree and changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "kv/cache_values.h"
#include "kv/ids.h"
#include "kv/lookup_scope.h"
#include "kv/prefix/prefix_tree.h"

namespace pagoda::kv {

// How far the tree knows a prompt, whether the nodes have pages or not.
struct PrefixPath {
  NodeId end;                 // of the last whole block, or the root
  std::vector<NodeId> nodes;  // the last one may be shared in part
  std::uint64_t tokens = 0;
};

class PrefixLookup {
 public:
  // The tree must outlive the lookup.
  explicit PrefixLookup(const PrefixTree& tree) : tree_(tree) {}

  // The longest match at which every group finds what the next query reads (README: P4, P5).
  Match match(const LookupScope& scope, std::span<const TokenId> prompt,
              MatchEnd end = MatchEnd::kAnywhere) const;
  // Writes the tokens that the tree holds behind `tokens`, of which those before the last are a
  // sequence that stands on `node`, the end of its last whole block or the root; returns how many.
  // Where several are known, one that the history of its class alone decides.
  std::size_t continuation(const LookupScope& scope, NodeId node, std::span<const TokenId> tokens,
                           std::span<TokenId> room, SearchWork& work) const;
  PrefixPath path(const LookupScope& scope, std::span<const TokenId> prompt) const;

 private:
  std::optional<PrefixTree::Found> child_to_follow(const LookupScope& scope, NodeId parent,
                                                   std::span<const TokenId> tokens,
                                                   bool block_is_public, SearchWork& work) const;

  std::optional<NodeId> child_behind(const LookupScope& scope, NodeId parent,
                                     std::span<const TokenId> begun, bool block_is_public,
                                     SearchWork& work) const;

  const PrefixTree& tree_;
};

}  // namespace pagoda::kv

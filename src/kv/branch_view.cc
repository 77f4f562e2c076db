// Shows a branch of the prefix tree to somebody who walks it.
#include <algorithm>
#include <unordered_map>

#include "kv/cache_parts.h"
#include "kv/cache_snapshot.h"
#include "kv/grove.h"

namespace pagoda::kv {
namespace {

template <class Value>
void keep_least(std::optional<Value>& kept, std::optional<Value> value) {
  if (value && (!kept || *value < *kept)) kept = value;
}

void leave_out_middle(std::vector<std::size_t>& list, std::size_t most) {
  if (list.size() <= most) return;
  const auto first = list.begin() + static_cast<std::ptrdiff_t>(most / 2);
  list.erase(first, first + static_cast<std::ptrdiff_t>(list.size() - most));
}

// The nodes of up to so many blocks of the pool, the branch that was asked for among them.
Grove look_at(const CacheParts& cache, std::optional<NodeId> node, std::uint32_t nodes_max) {
  const BlockPool& pool = cache.pool();
  GroveWalk walk(cache.tree(), nodes_max);
  if (node) walk.add(*node);
  const std::uint32_t stride = std::max(1u, pool.blocks() / std::max(1u, nodes_max));
  for (std::uint32_t i = 0; i < pool.blocks() && !walk.full(); i += stride) {
    if (pool.state(BlockId(i)) == BlockState::kFree) continue;
    if (const std::optional<NodeId> owner = pool.owner(BlockId(i))) walk.add(*owner);
  }
  return walk.finish();
}

class BranchWalk {
 public:
  BranchWalk(const CacheParts& cache, const Grove& grove, std::span<const NodeId> leaving,
             bool private_tokens)
      : cache_(cache),
        tree_(cache.tree()),
        grove_(grove),
        private_tokens_(private_tokens),
        ranks_(grove.nodes.size()) {
    std::unordered_map<std::uint32_t, std::size_t> rank_of;
    for (std::size_t i = 0; i < leaving.size(); ++i) rank_of.try_emplace(leaving[i].value(), i);
    for (std::size_t i = 0; i < grove.nodes.size(); ++i) {
      const auto found = rank_of.find(grove.nodes[i].node.value());
      if (found == rank_of.end()) continue;
      for (std::size_t at = i; at != Grove::kNone; at = grove.nodes[at].parent) {
        keep_least(ranks_[at], std::optional(found->second));
      }
    }
  }

  // Returns the first node of the branch that `at` is part of.
  std::size_t begin_of(std::size_t at) const {
    for (;;) {
      const std::size_t above = grove_.nodes[at].parent;
      if (tree_.is_root(grove_.nodes[above].node) || !grove_.goes_on(above)) return at;
      at = above;
    }
  }

  // Returns the first nodes of the branches that the branch of `at` goes on from, the top first.
  std::vector<std::size_t> above(std::size_t at) const {
    std::vector<std::size_t> branches;
    for (std::size_t up = grove_.nodes[at].parent; !tree_.is_root(grove_.nodes[up].node);) {
      branches.push_back(begin_of(up));
      up = grove_.nodes[branches.back()].parent;
    }
    std::reverse(branches.begin(), branches.end());
    return branches;
  }

  // Returns the first nodes of branches that go on from the branch of `at`, the largest first.
  std::vector<std::size_t> below(std::size_t at) const {
    const std::span<std::size_t> children = grove_.nodes[grove_.end_of(at)].children;
    return largest_first({children.begin(), children.end()});
  }

  // Returns the first nodes of all namespaces, the largest branch first.
  std::vector<std::size_t> tops() const {
    std::vector<std::size_t> tops;
    for (const Grove::Seen& seen : grove_.nodes) {
      if (!tree_.is_root(seen.node)) continue;
      tops.insert(tops.end(), seen.children.begin(), seen.children.end());
    }
    return largest_first(std::move(tops));
  }

  BranchDetails details(std::size_t at, std::uint32_t tokens_max) const {
    const NodeId first = grove_.nodes[at].node;
    BranchDetails branch = {.node = first,
                            .tokens = {},
                            .blocks = grove_.nodes[at].blocks,
                            .is_public = tree_.region(first) == kPublic,
                            .owner = cache_.salts().owner(tree_.region(first)),
                            .eviction_rank = ranks_[at]};
    const std::size_t end = grove_.end_of(at);
    branch.branches = grove_.nodes[end].children.size();
    for (;; at = grove_.nodes[at].children.front()) {
      add_node(grove_.nodes[at].node, tokens_max, branch);
      if (at == end) break;
    }
    if (branch.sequences > 0) branch.idle_ns = std::nullopt;
    return branch;
  }

 private:
  std::vector<std::size_t> largest_first(std::vector<std::size_t> branches) const {
    std::stable_sort(branches.begin(), branches.end(), [this](std::size_t a, std::size_t b) {
      return grove_.nodes[a].blocks > grove_.nodes[b].blocks;
    });
    return branches;
  }

  void add_node(NodeId node, std::uint32_t tokens_max, BranchDetails& branch) const {
    const std::span<const TokenId> tokens = tree_.tokens(node);
    branch.tokens_own += tokens.size();
    const bool shows_text = branch.is_public || private_tokens_;
    for (const TokenId token : tokens) {
      if (!shows_text || branch.tokens.size() == tokens_max) break;
      branch.tokens.push_back(token.value());
    }
    for (std::uint32_t group = 0; group < tree_.groups(); ++group) {
      const std::optional<BlockId> page = tree_.page(node, group);
      if (!page) continue;
      ++branch.blocks_own;
      branch.sequences = std::max(branch.sequences, cache_.pool().users(*page));
      keep_least(branch.idle_ns, cache_.history().idle_ns(*page));
    }
    branch.is_retained = branch.is_retained || cache_.retention().contains(node);
    branch.is_superseded = branch.is_superseded || cache_.sessions().is_superseded(node);
  }

  const CacheParts& cache_;
  const PrefixTree& tree_;
  const Grove& grove_;
  bool private_tokens_;
  std::vector<std::optional<std::size_t>> ranks_;  // [index of the grove], of it or what is below
};

}  // namespace

std::optional<BranchView> view_branch(const CacheParts& cache, std::optional<NodeId> node,
                                      std::span<const NodeId> leaving, const BranchLimits& limits) {
  const PrefixTree& tree = cache.tree();
  if (node) {
    const bool is_there = node->value() < tree.node_numbers() && tree.is_live(*node);
    if (!is_there || tree.is_root(*node)) return std::nullopt;
  }
  const Grove grove = look_at(cache, node, limits.nodes_max);
  const BranchWalk walk(cache, grove, leaving, limits.private_tokens);
  BranchView view = {.above = {},
                     .branch = {},
                     .below = {},
                     .nodes = tree.nodes(),
                     .nodes_seen = grove.nodes.size()};
  std::vector<std::size_t> below;
  if (node) {
    // The node itself is the first that was looked at.
    const std::size_t at = walk.begin_of(0);
    view.branch = walk.details(at, limits.tokens_branch_max);
    below = walk.below(at);
    std::vector<std::size_t> above = walk.above(at);
    view.above_all = above.size();
    leave_out_middle(above, limits.above_max);
    for (const std::size_t begin : above) {
      view.above.push_back(walk.details(begin, limits.tokens_max));
    }
  } else {
    below = walk.tops();
  }
  view.below_all = below.size();
  below.resize(std::min<std::size_t>(below.size(), limits.below_max));
  for (const std::size_t at : below) view.below.push_back(walk.details(at, limits.tokens_max));
  return view;
}

}  // namespace pagoda::kv

#include "sim/page_oracle.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace pagoda::sim {
namespace {

// Returns digests of the node's tokens, below those of all tokens before them.
std::vector<Digest> rows_of(const kv::Cache& cache, kv::NodeId node) {
  const kv::PrefixTree& tree = cache.tree();
  std::vector<kv::NodeId> chain;
  kv::NodeId root = node;
  for (; !tree.is_root(root); root = tree.parent(root)) chain.push_back(root);
  std::vector<Digest> rows;
  Digest before = 0;
  for (const auto& [name, space] : cache.namespaces()) {
    if (space.root == root) before = ToyModel::start(name.policy.attention());
  }
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
    rows.clear();
    for (const TokenId token : tree.tokens(*at)) {
      rows.push_back(before = ToyModel::row(before, token));
    }
  }
  return rows;
}

}  // namespace

std::string wrong_page(const kv::Cache& cache, ToyRunner& runner) {
  const kv::PrefixTree& tree = cache.tree();
  for (std::uint32_t i = 0; i < tree.node_numbers(); ++i) {
    const kv::NodeId node(i);
    if (!tree.is_live(node) || tree.is_root(node) || tree.pages(node) == 0) continue;
    const std::vector<Digest> rows = rows_of(cache, node);
    for (std::uint32_t group = 0; group < tree.groups(); ++group) {
      const auto page = tree.page(node, group);
      if (!page) continue;
      if (std::memcmp(runner.page(*page).data(), rows.data(), rows.size() * sizeof(Digest)) != 0) {
        return fmt::format("block {} (node {}, depth {}, group {}, region {}) has rows of others",
                           page->value(), i, tree.depth(node), group, tree.region(node).value());
      }
    }
  }
  return {};
}

std::string unasked_node(const kv::Cache& cache, const PrefixSet& known) {
  const kv::PrefixTree& tree = cache.tree();
  for (std::uint32_t i = 0; i < tree.node_numbers(); ++i) {
    const kv::NodeId node(i);
    if (!tree.is_live(node) || tree.is_root(node)) continue;
    if (!known.contains(rows_of(cache, node).back())) {
      return fmt::format("node {} (depth {}) has tokens of no sequence", i, tree.depth(node));
    }
  }
  return {};
}

}  // namespace pagoda::sim

#include "kv/cache_snapshot.h"

#include <algorithm>
#include <tuple>

#include "kv/cache_parts.h"

namespace pagoda::kv {
namespace {

CacheSnapshot::Blocks count_blocks(const BlockPool& pool) {
  CacheSnapshot::Blocks blocks;
  blocks.all = pool.blocks();
  for (std::uint32_t i = 0; i < pool.blocks(); ++i) {
    switch (pool.state(BlockId(i))) {
      case BlockState::kFree:
        ++blocks.free;
        break;
      case BlockState::kFilling:
        ++blocks.filling;
        break;
      case BlockState::kSealed:
        ++blocks.sealed;
        break;
      case BlockState::kIdle:
        ++blocks.idle;
        break;
    }
  }
  return blocks;
}

NodeSnapshot snapshot_of(const CacheParts& cache, NodeId node) {
  const PrefixTree& tree = cache.tree();
  NodeSnapshot snapshot = {.depth = tree.depth(node) - 1,
                           .tokens = {},
                           .whole = tree.is_whole(node),
                           .hash = {},
                           .is_public = tree.region(node) == kPublic,
                           .is_bounded = tree.is_bounded(node),
                           .children = tree.children(node),
                           .pages = tree.pages(node),
                           .references = 0};
  if (snapshot.whole && cache.hashes().enabled()) snapshot.hash = cache.hashes().of(node).hex();
  for (const TokenId token : tree.tokens(node)) snapshot.tokens.push_back(token.value());
  for (std::uint32_t group = 0; group < tree.groups(); ++group) {
    const std::optional<BlockId> page = tree.page(node, group);
    if (page) snapshot.references = std::max(snapshot.references, cache.pool().references(*page));
  }
  return snapshot;
}

}  // namespace

CacheSnapshot take_snapshot(const CacheParts& cache, std::size_t nodes_max) {
  const PrefixTree& tree = cache.tree();
  CacheSnapshot snapshot;
  snapshot.blocks = count_blocks(cache.pool());
  snapshot.blocks_public = cache.salts().blocks_charged(kPublic);
  snapshot.blocks_evicted = cache.stats().blocks_evicted;
  snapshot.blocks_deduplicated = cache.stats().blocks_deduplicated;
  snapshot.nodes = tree.nodes() - cache.namespaces().size();

  std::vector<NodeId> todo;
  for (const auto& [name, space] : cache.namespaces()) todo.push_back(space.root);
  std::reverse(todo.begin(), todo.end());
  while (!todo.empty() && snapshot.tree.size() < nodes_max) {
    const NodeId node = todo.back();
    todo.pop_back();
    if (!tree.is_root(node)) snapshot.tree.push_back(snapshot_of(cache, node));
    const std::size_t first = todo.size();
    tree.for_each_child(node, [&](NodeId child) { todo.push_back(child); });
    std::reverse(todo.begin() + static_cast<std::ptrdiff_t>(first), todo.end());
  }
  return snapshot;
}

std::vector<NodeId> list_whole_blocks(const CacheParts& cache) {
  const PrefixTree& tree = cache.tree();
  const BlockPool& pool = cache.pool();
  struct Used {
    Tick until;
    std::uint32_t depth;
    NodeId node;
  };
  std::vector<Used> used;
  for (std::uint32_t i = 0; i < tree.node_numbers(); ++i) {
    const NodeId node(i);
    if (!tree.is_live(node) || !tree.is_whole(node) || tree.pages(node) == 0) continue;
    if (cache.salts().is_retired(tree.region(node))) continue;
    Tick until = 0;
    for (std::uint32_t group = 0; group < tree.groups(); ++group) {
      const std::optional<BlockId> page = tree.page(node, group);
      if (!page) continue;
      until =
          std::max(until, pool.users(*page) > 0 ? cache.clock().tick + 1 : pool.last_use(*page));
    }
    used.push_back({until, tree.depth(node), node});
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

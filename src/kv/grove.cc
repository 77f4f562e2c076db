#include "kv/grove.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace pagoda::kv {

void GroveWalk::add(NodeId node) {
  std::size_t below = Grove::kNone;
  for (;;) {
    const auto [found, is_new] = numbers_.try_emplace(node.value(), grove_.nodes.size());
    if (is_new) {
      grove_.nodes.push_back(
          {.node = node, .region = tree_.region(node), .blocks = tree_.pages(node)});
    }
    if (below != Grove::kNone) grove_.nodes[below].parent = found->second;
    if (!is_new || tree_.is_root(node)) return;
    below = found->second;
    node = tree_.parent(node);
  }
}

Grove GroveWalk::finish() {
  std::vector<Grove::Seen>& nodes = grove_.nodes;
  std::vector<std::size_t>& order = grove_.order;
  order.resize(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tree_.depth(nodes[a].node) > tree_.depth(nodes[b].node);
  });
  for (const std::size_t at : order) {
    if (nodes[at].parent != Grove::kNone) nodes[nodes[at].parent].blocks += nodes[at].blocks;
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(nodes[a].parent, a) < std::tie(nodes[b].parent, b);
  });
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    const std::size_t parent = nodes[order[first]].parent;
    while (end < order.size() && nodes[order[end]].parent == parent) ++end;
    if (parent != Grove::kNone) {
      nodes[parent].children = std::span(order).subspan(first, end - first);
    }
  }
  return std::move(grove_);
}

}  // namespace pagoda::kv

#include "kv/prefix/prefix_tree.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pagoda::kv {
namespace {

std::uint64_t class_key(NodeId parent, SaltId salt) {
  return std::uint64_t{parent.value()} << 32 | salt.value();
}

std::size_t shared_length(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t limit = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i < limit && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

PrefixTree::PrefixTree(const PrefixTreeOptions& options) : options_(options) {
  ASSERT(options.block_tokens >= 1 && options.block_tokens <= UINT16_MAX, "1 to 65535 tokens");
  ASSERT(options.slices >= 1 && options.slices <= UINT16_MAX, "1 to 65535 slices");
}

void PrefixTree::reserve(std::size_t nodes) {
  nodes_.reserve(nodes);
  tokens_.reserve(nodes * options_.block_tokens);
  pages_.reserve(nodes * options_.slices);
  dead_.reserve(nodes);
}

NodeId PrefixTree::new_node() {
  ++nodes_live_;
  if (!dead_.empty()) {
    const NodeId node(dead_.back());
    dead_.pop_back();
    at(node) = Node{.live = true};
    return node;
  }
  ASSERT(nodes_.size() < kNone, "at most 2^32 - 1 nodes");
  const NodeId node(static_cast<std::uint32_t>(nodes_.size()));
  nodes_.push_back(Node{.live = true});
  tokens_.resize(tokens_.size() + options_.block_tokens);
  pages_.resize(pages_.size() + options_.slices, kNone);
  return node;
}

NodeId PrefixTree::add_root() { return new_node(); }

NodeId PrefixTree::insert(NodeId parent, SaltId salt, std::span<const TokenId> tokens) {
  ASSERT(!tokens.empty() && tokens.size() <= options_.block_tokens, "1 to block_tokens tokens");
  ASSERT(is_root(parent) || is_whole(parent), "an open leaf has no children");
  ASSERT(region(parent) == kPublic || region(parent) == salt, "a region never changes its salt");
  const NodeId node = new_node();
  Node& fresh = at(node);
  fresh.parent = parent.value();
  fresh.region = salt;
  fresh.depth = depth(parent) + 1;
  fresh.tokens = static_cast<std::uint16_t>(tokens.size());
  fresh.priority = priority_of(tokens);
  std::copy(tokens.begin(), tokens.end(),
            tokens_.begin() + static_cast<std::ptrdiff_t>(node.value()) * options_.block_tokens);
  ++at(parent).children;
  link(class_root(parent, salt), node.value());
  return node;
}

void PrefixTree::erase(NodeId node) {
  ASSERT(is_bare(node), "only a bare node can go");
  const NodeId above = parent(node);
  unlink(class_root(above, region(node)), node.value());
  drop_class_if_empty(above, region(node));
  --at(above).children;
  at(node).live = false;
  dead_.push_back(node.value());
  --nodes_live_;
}

void PrefixTree::unpin(NodeId node) {
  ASSERT(at(node).pins > 0, "the node is pinned");
  --at(node).pins;
}

void PrefixTree::extend(NodeId leaf, std::span<const TokenId> more) {
  Node& node = at(leaf);
  ASSERT(node.tokens + more.size() <= options_.block_tokens, "at most block_tokens tokens");
  std::uint32_t* const root = class_root(parent(leaf), node.region);
  unlink(root, leaf.value());
  std::copy(more.begin(), more.end(),
            tokens_.begin() + static_cast<std::ptrdiff_t>(leaf.value()) * options_.block_tokens +
                node.tokens);
  node.tokens = static_cast<std::uint16_t>(node.tokens + more.size());
  node.priority = priority_of(tokens(leaf));
  link(root, leaf.value());
}

std::optional<PrefixTree::Found> PrefixTree::best_child(NodeId parent, SaltId salt,
                                                        std::span<const TokenId> tokens,
                                                        SearchWork& work) const {
  const std::uint32_t* const root = class_root(parent, salt);
  if (root == nullptr) return std::nullopt;
  std::optional<Found> best;
  // The neighbours of `tokens` in the order are on the way down, and one of
  // them is the best.
  for (std::uint32_t at_node = *root; at_node != kNone;) {
    const std::span<const TokenId> here = this->tokens(NodeId(at_node));
    const std::size_t shared = shared_length(here, tokens);
    ++work.nodes_visited;
    work.tokens_compared += std::min(shared + 1, std::min(here.size(), tokens.size()));
    if (shared > 0 && (!best || shared > best->tokens_shared)) {
      best = Found{NodeId(at_node), static_cast<std::uint32_t>(shared)};
    }
    if (shared == here.size() || shared == tokens.size()) break;  // no other shares more
    at_node = tokens[shared] < here[shared] ? nodes_[at_node].left : nodes_[at_node].right;
  }
  return best;
}

std::uint32_t PrefixTree::priority_of(std::span<const TokenId> tokens) const {
  std::uint64_t hash = options_.hash_seed ^ 0x9E3779B97F4A7C15u;
  for (const TokenId token : tokens) {
    hash = (hash ^ token.value()) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  // One round more: without it 300,000 siblings that differ in the last token
  // alone made, with an unlucky seed, a treap 222 deep instead of 47.
  hash *= 0xD6E8FEB86659FD93u;
  return static_cast<std::uint32_t>(hash >> 32);
}

bool PrefixTree::before(std::uint32_t a, std::uint32_t b) const {
  const auto left = tokens(NodeId(a));
  const auto right = tokens(NodeId(b));
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
}

const std::uint32_t* PrefixTree::class_root(NodeId parent, SaltId region) const {
  if (at(parent).region == region) return &at(parent).own_children;
  const auto found = private_classes_.find(class_key(parent, region));
  return found == private_classes_.end() ? nullptr : &found->second;
}

std::uint32_t* PrefixTree::class_root(NodeId parent, SaltId region) {
  if (at(parent).region == region) return &at(parent).own_children;
  return &private_classes_.try_emplace(class_key(parent, region), kNone).first->second;
}

void PrefixTree::drop_class_if_empty(NodeId parent, SaltId region) {
  if (at(parent).region == region) return;
  const auto found = private_classes_.find(class_key(parent, region));
  if (found->second == kNone) private_classes_.erase(found);
}

void PrefixTree::link(std::uint32_t* root, std::uint32_t node) {
  std::uint32_t* place = root;
  while (*place != kNone && nodes_[*place].priority >= nodes_[node].priority) {
    place = before(node, *place) ? &nodes_[*place].left : &nodes_[*place].right;
  }
  // Split what hangs here into what comes before the node and what comes after.
  std::uint32_t rest = *place;
  *place = node;
  std::uint32_t* smaller = &nodes_[node].left;
  std::uint32_t* larger = &nodes_[node].right;
  while (rest != kNone) {
    if (before(rest, node)) {
      *smaller = rest;
      smaller = &nodes_[rest].right;
      rest = *smaller;
    } else {
      *larger = rest;
      larger = &nodes_[rest].left;
      rest = *larger;
    }
  }
  *smaller = kNone;
  *larger = kNone;
}

void PrefixTree::unlink(std::uint32_t* root, std::uint32_t node) {
  std::uint32_t* place = root;
  while (*place != node) {
    ASSERT(*place != kNone, "the node is in its class");
    place = before(node, *place) ? &nodes_[*place].left : &nodes_[*place].right;
  }
  std::uint32_t left = nodes_[node].left;
  std::uint32_t right = nodes_[node].right;
  while (left != kNone && right != kNone) {
    if (nodes_[left].priority >= nodes_[right].priority) {
      *place = left;
      place = &nodes_[left].right;
      left = *place;
    } else {
      *place = right;
      place = &nodes_[right].left;
      right = *place;
    }
  }
  *place = left != kNone ? left : right;
  nodes_[node].left = kNone;
  nodes_[node].right = kNone;
}

std::vector<std::uint32_t> PrefixTree::child_list(NodeId node) const {
  std::vector<std::uint32_t> list;
  const auto append_class = [&](std::uint32_t root) {
    std::vector<std::uint32_t> above;
    for (std::uint32_t at_node = root; at_node != kNone || !above.empty();) {
      for (; at_node != kNone; at_node = nodes_[at_node].left) above.push_back(at_node);
      at_node = above.back();
      above.pop_back();
      list.push_back(at_node);
      at_node = nodes_[at_node].right;
    }
  };
  append_class(at(node).own_children);
  if (list.size() == children(node)) return list;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> classes;  // of the node, by salt
  for (const auto& [key, root] : private_classes_) {
    if (key >> 32 == node.value()) classes.emplace_back(key, root);
  }
  std::sort(classes.begin(), classes.end());
  for (const auto& [key, root] : classes) append_class(root);
  return list;
}

void PrefixTree::check() const {
  std::uint32_t live = 0;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].live) continue;
    ++live;
    const NodeId node(i);
    std::uint32_t pages_here = 0;
    for (std::uint32_t s = 0; s < options_.slices; ++s) pages_here += page(node, s) ? 1 : 0;
    ASSERT(pages_here == pages(node), "T1: the count of a node's pages is true");
    ASSERT(is_root(node) || at(parent(node)).live, "T2: every node hangs on a live one");
    ASSERT(is_root(node) || depth(node) == depth(parent(node)) + 1,
           "T2: depth counts from the root");
    const std::vector<std::uint32_t> list = child_list(node);
    ASSERT(list.size() == children(node), "T3: the count of children is true");
    std::uint32_t resident = 0;
    for (const std::uint32_t child : list) resident += nodes_[child].pages > 0 ? 1 : 0;
    ASSERT(resident == children_resident(node), "T3: the count of resident children is true");
    for (std::size_t c = 0; c < list.size(); ++c) {
      const NodeId child(list[c]);
      ASSERT(parent(child) == node, "T3: children know their parent");
      if (c == 0 || region(NodeId(list[c - 1])) != region(child)) continue;
      const auto left = tokens(NodeId(list[c - 1]));
      const auto right = tokens(child);
      const std::size_t shared = shared_length(left, right);
      ASSERT(shared < left.size() && shared < right.size() && left[shared] < right[shared],
             "T4: in order, and no child begins with another");
    }
    for (const std::uint32_t side : {nodes_[i].left, nodes_[i].right}) {
      ASSERT(side == kNone || nodes_[side].priority <= nodes_[i].priority,
             "T5: a treap's priorities fall on the way down");
    }
  }
  ASSERT(live == nodes_live_, "T2: the count of nodes is true");
  for (const auto& [key, root] : private_classes_) {
    ASSERT(root != kNone, "T3: a class without members is forgotten");
  }
}

}  // namespace pagoda::kv

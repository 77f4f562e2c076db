#include "kv/prefix/prefix_tree.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/assert.h"

namespace pagoda::kv {
namespace {

std::size_t shared_length(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t limit = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i < limit && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

PrefixTree::PrefixTree(const PrefixTreeOptions& options)
    : options_(options), edges_(options.hash_seed), private_classes_(options.hash_seed) {
  ASSERT(options.block_tokens >= 1 && options.block_tokens <= UINT16_MAX, "1 to 65535 tokens");
  ASSERT(options.groups >= 1 && options.groups <= UINT16_MAX, "1 to 65535 groups");
}

void PrefixTree::reserve(std::size_t nodes) {
  nodes_.reserve(nodes);
  tokens_.reserve(nodes * options_.block_tokens);
  pages_.reserve(nodes * options_.groups);
  dead_.reserve(nodes);
  branches_.reserve(nodes);
  edges_.reserve(nodes);
}

NodeId PrefixTree::new_node() {
  ++nodes_live_;
  if (!dead_.empty()) {
    const NodeId node(dead_.back());
    dead_.pop_back();
    at(node) = Node{.live = true};
    return node;
  }
  ASSERT(nodes_.size() < kBranchBit, "at most 2^31 nodes");
  const NodeId node(static_cast<std::uint32_t>(nodes_.size()));
  nodes_.push_back(Node{.live = true});
  tokens_.resize(tokens_.size() + options_.block_tokens);
  pages_.resize(pages_.size() + options_.groups, kNone);
  return node;
}

NodeId PrefixTree::add_root(Bounded bounded) {
  const NodeId root = new_node();
  at(root).bounded = bounded;
  return root;
}

NodeId PrefixTree::insert(NodeId parent, SaltId salt, std::span<const TokenId> tokens) {
  ASSERT(!tokens.empty() && tokens.size() <= options_.block_tokens, "1 to block_tokens tokens");
  ASSERT(is_root(parent) || is_whole(parent), "a partial block has no children");
  ASSERT(region(parent) == kPublic || region(parent) == salt, "a region never changes its salt");
  const NodeId node = new_node();
  Node& fresh = at(node);
  fresh.parent = parent.value();
  fresh.region = salt;
  fresh.depth = depth(parent) + 1;
  fresh.bounded = at(parent).bounded;
  fresh.tokens = static_cast<std::uint16_t>(tokens.size());
  std::copy(tokens.begin(), tokens.end(),
            tokens_.begin() + static_cast<std::ptrdiff_t>(node.value()) * options_.block_tokens);
  ++at(parent).children;
  link(node.value());
  return node;
}

void PrefixTree::erase(NodeId node) {
  ASSERT(is_bare(node), "only a bare node can go");
  const NodeId above = parent(node);
  unlink(node.value());
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
  std::copy(more.begin(), more.end(),
            tokens_.begin() + static_cast<std::ptrdiff_t>(leaf.value()) * options_.block_tokens +
                node.tokens);
  node.tokens = static_cast<std::uint16_t>(node.tokens + more.size());
}

std::optional<PrefixTree::Found> PrefixTree::best_child(NodeId parent, SaltId salt,
                                                        std::span<const TokenId> tokens,
                                                        SearchWork& work) const {
  const auto found = closest_child(parent, salt, tokens, work);
  return found && found->tokens_shared > 0 ? found : std::nullopt;
}

std::optional<PrefixTree::Found> PrefixTree::closest_child(NodeId parent, SaltId salt,
                                                           std::span<const TokenId> tokens,
                                                           SearchWork& work) const {
  const TriePosition top = class_top(parent, salt);
  if (top == kNone) return std::nullopt;
  const Exit exit = descend(top, tokens, work);
  return Found{NodeId(exit.child), exit.tokens_shared};
}

PrefixTree::Exit PrefixTree::descend(TriePosition top, std::span<const TokenId> tokens,
                                     SearchWork& work) const {
  std::uint32_t shared = 0;
  for (TriePosition position = top;;) {
    const bool parts = is_branch(position);
    const std::uint32_t child = parts ? branch(position).first : position;
    const std::uint32_t length = parts ? branch(position).tokens : nodes_[position].tokens;
    const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>(length, tokens.size()));
    const TokenId* const here = row(child);
    while (shared < limit && here[shared] == tokens[shared]) ++shared;
    ++work.nodes_visited;
    TriePosition below = kNone;
    if (parts && shared == length && shared < tokens.size()) {
      below = edges_.find(position, tokens[shared].value());
    }
    if (below == kNone) {
      work.tokens_compared += std::min<std::size_t>(shared + 1, parts ? tokens.size() : limit);
      return {position, child, shared};
    }
    position = below;
    ++shared;  // the edge's label
  }
}

PrefixTree::TriePosition PrefixTree::class_top(NodeId parent, SaltId region) const {
  if (at(parent).region == region) return at(parent).own_class;
  return private_classes_.find(parent.value(), region.value());
}

void PrefixTree::set_class_top(NodeId parent, SaltId region, TriePosition top) {
  if (at(parent).region == region) {
    at(parent).own_class = top;
  } else if (top == kNone) {
    private_classes_.erase(parent.value(), region.value());
  } else {
    private_classes_.set(parent.value(), region.value(), top);
  }
}

PrefixTree::TriePosition PrefixTree::new_branch() {
  if (branch_unused_ == kNone) {
    branches_.emplace_back();
    return static_cast<TriePosition>(branches_.size() - 1) | kBranchBit;
  }
  const TriePosition position = branch_unused_;
  branch_unused_ = branch(position).branch_above;
  branch(position) = {};
  return position;
}

void PrefixTree::add_way(TriePosition branch, std::uint32_t label, TriePosition down) {
  edges_.set(branch, label, down);
  branch_above(down) = branch;
  ++this->branch(branch).ways;
  this->branch(branch).labels ^= label;
}

// `fresh` takes the position of `old`, which hangs below the branch `above` or is the top of its
// class.
void PrefixTree::hang_instead(TriePosition fresh, TriePosition old, TriePosition above) {
  const NodeId member(first_below(old));
  branch_above(fresh) = above;
  if (above == kNone) {
    set_class_top(parent(member), region(member), fresh);
  } else {
    edges_.set(above, row(member.value())[branch(above).tokens].value(), fresh);
  }
}

// The node is the first of every run that `next` was the first of: it hangs beside all of that run.
void PrefixTree::list_before(std::uint32_t node, std::uint32_t next) {
  Node& here = nodes_[node];
  here.next = next;
  here.previous = std::exchange(nodes_[next].previous, node);
  if (here.previous != kNone) nodes_[here.previous].next = node;
  for (TriePosition above = here.branch_above; above != kNone && branch(above).first == next;
       above = branch(above).branch_above) {
    branch(above).first = node;
  }
}

void PrefixTree::link(std::uint32_t node) {
  const NodeId id(node);
  const TriePosition top = class_top(parent(id), region(id));
  if (top == kNone) return set_class_top(parent(id), region(id), node);
  SearchWork work;
  const Exit exit = descend(top, tokens(id), work);
  const std::uint32_t parts_at = exit.tokens_shared;
  ASSERT(parts_at < at(id).tokens, "no child of the class begins with these tokens");
  const std::uint32_t label = row(node)[parts_at].value();
  if (is_branch(exit.position) && branch(exit.position).tokens == parts_at) {
    add_way(exit.position, label, node);
  } else {
    ASSERT(parts_at < nodes_[exit.child].tokens, "no child of the class is their beginning");
    const TriePosition fresh = new_branch();
    branch(fresh).first = exit.child;
    branch(fresh).tokens = static_cast<std::uint16_t>(parts_at);
    hang_instead(fresh, exit.position, branch_above(exit.position));
    add_way(fresh, row(exit.child)[parts_at].value(), exit.position);
    add_way(fresh, label, node);
  }
  list_before(node, exit.child);
}

void PrefixTree::unlink(std::uint32_t node) {
  const NodeId id(node);
  const Node& here = nodes_[node];
  const TriePosition above = here.branch_above;
  if (above == kNone) return set_class_top(parent(id), region(id), kNone);
  // Two children or more are below each branch above, so that the next stands in the same run.
  for (TriePosition position = above; position != kNone && branch(position).first == node;
       position = branch(position).branch_above) {
    branch(position).first = here.next;
  }
  if (here.previous != kNone) nodes_[here.previous].next = here.next;
  if (here.next != kNone) nodes_[here.next].previous = here.previous;
  Branch& parting = branch(above);
  const std::uint32_t label = row(node)[parting.tokens].value();
  edges_.erase(above, label);
  parting.labels ^= label;
  if (--parting.ways > 1) return;
  const TriePosition left = edges_.find(above, parting.labels);
  edges_.erase(above, parting.labels);
  hang_instead(left, above, parting.branch_above);
  parting = {.branch_above = branch_unused_};
  branch_unused_ = above;
}

PrefixTree::ResidentChildren PrefixTree::resident_children(NodeId parent, SaltId salt) const {
  ResidentChildren resident;
  const TriePosition top = class_top(parent, salt);
  if (top == kNone) return resident;
  for (std::uint32_t child = first_below(top); child != kNone; child = nodes_[child].next) {
    if (nodes_[child].pages == 0) continue;
    if (resident.count == 0) resident.first = NodeId(child);
    if (++resident.count == 2) break;
  }
  return resident;
}

void PrefixTree::append_class(TriePosition top, std::vector<std::uint32_t>& list) const {
  const auto first = static_cast<std::ptrdiff_t>(list.size());
  for (std::uint32_t child = first_below(top); child != kNone; child = nodes_[child].next) {
    list.push_back(child);
  }
  std::sort(list.begin() + first, list.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::ranges::lexicographical_compare(tokens(NodeId(a)), tokens(NodeId(b)));
  });
}

std::vector<std::uint32_t> PrefixTree::child_list(NodeId node) const {
  std::vector<std::uint32_t> list;
  if (at(node).own_class != kNone) append_class(at(node).own_class, list);
  if (list.size() == children(node)) return list;
  std::vector<std::pair<std::uint32_t, TriePosition>> classes;  // of the node, by salt
  private_classes_.for_each([&](std::uint32_t parent, std::uint32_t salt, TriePosition top) {
    if (parent == node.value()) classes.emplace_back(salt, top);
  });
  std::sort(classes.begin(), classes.end());
  for (const auto& [salt, top] : classes) append_class(top, list);
  return list;
}

void PrefixTree::check() const {
  std::uint32_t live = 0;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].live) continue;
    ++live;
    const NodeId node(i);
    std::uint32_t pages_here = 0;
    for (std::uint32_t s = 0; s < options_.groups; ++s) pages_here += page(node, s) ? 1 : 0;
    ASSERT(pages_here == pages(node), "T1: the count of a node's pages is true");
    ASSERT(is_root(node) || at(parent(node)).live, "T2: every node hangs on a live one");
    ASSERT(is_root(node) || depth(node) == depth(parent(node)) + 1,
           "T2: depth counts from the root");
    check_children(node);
  }
  ASSERT(live == nodes_live_, "T2: the count of nodes is true");
  check_branches();
}

void PrefixTree::check_children(NodeId node) const {
  const std::vector<std::uint32_t> list = child_list(node);
  ASSERT(list.size() == children(node), "T3: the count of children is true");
  std::uint32_t resident = 0;
  for (const std::uint32_t child : list) resident += nodes_[child].pages > 0 ? 1 : 0;
  ASSERT(resident == children_resident(node), "T3: the count of resident children is true");
  for (std::size_t c = 0; c < list.size(); ++c) {
    const NodeId child(list[c]);
    ASSERT(parent(child) == node, "T3: children know their parent");
    if (c > 0 && region(NodeId(list[c - 1])) == region(child)) {
      const auto left = tokens(NodeId(list[c - 1]));
      const std::size_t shared = shared_length(left, tokens(child));
      ASSERT(shared < left.size() && shared < tokens(child).size(),
             "T4: no child begins with another");
    }
    SearchWork work;
    const auto found = best_child(node, region(child), tokens(child), work);
    ASSERT(found && found->node == child && found->tokens_shared == tokens(child).size(),
           "T5: every child is found by its tokens");
  }
}

void PrefixTree::check_branches() const {
  std::vector<std::uint32_t> ways(branches_.size(), 0);
  std::vector<std::uint32_t> labels(branches_.size(), 0);
  edges_.for_each([&](TriePosition from, std::uint32_t label, TriePosition to) {
    const TriePosition above = is_branch(to) ? branch(to).branch_above : nodes_[to].branch_above;
    ASSERT(above == from, "T5: a position knows the branch above it");
    ++ways[from & ~kBranchBit];
    labels[from & ~kBranchBit] ^= label;
  });
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    const Branch& here = branches_[i];
    ASSERT(here.ways == ways[i] && here.labels == labels[i], "T5: a branch knows its edges");
    if (here.ways == 0) continue;
    ASSERT(here.ways > 1, "T5: at a branch something parts");
    const std::uint32_t before = nodes_[here.first].previous;
    const std::uint32_t behind = nodes_[here.first].next;
    const auto shared = [&](std::uint32_t node) {
      return shared_length(tokens(NodeId(here.first)), tokens(NodeId(node)));
    };
    ASSERT(behind != kNone && shared(behind) >= here.tokens, "T6: those below a branch are a run");
    ASSERT(before == kNone || shared(before) < here.tokens, "T6: a branch names the first below");
  }
}

}  // namespace pagoda::kv

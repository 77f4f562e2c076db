#include "kv/prefix/prefix_lookup.h"

#include <algorithm>
#include <vector>

namespace pagoda::kv {
namespace {

// For each group, the block since which all nodes seen so far have a page, and whether its sinks
// do.
class Runs {
 public:
  Runs(std::span<const memory::AttentionSpec> groups, std::uint32_t block_tokens)
      : groups_(groups),
        block_tokens_(block_tokens),
        run_start_(groups.size(), 0),
        lacks_sinks_(groups.size(), false) {}

  template <class Has>  // has(group)
  void add(Has&& has) {
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      if (has(group)) continue;
      run_start_[group] = blocks_ + 1;
      if (blocks_ < groups_[group].sink_blocks(block_tokens_)) lacks_sinks_[group] = true;
    }
    ++blocks_;
  }

  // Would a sequence of `tokens` tokens, ending in the last block seen, find all it reads?
  bool serve(std::uint64_t tokens) const {
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      const std::uint64_t first = memory::first_block_kept(groups_[group], tokens, block_tokens_);
      if (run_start_[group] > first || lacks_sinks_[group]) return false;
    }
    return true;
  }

 private:
  std::span<const memory::AttentionSpec> groups_;
  std::uint32_t block_tokens_;
  std::vector<std::uint64_t> run_start_;
  std::vector<bool> lacks_sinks_;
  std::uint64_t blocks_ = 0;
};

}  // namespace

// The walk follows the class that the block belongs to, unless the other class that the scope may
// see shares more tokens.
std::optional<PrefixTree::Found> PrefixLookup::child_to_follow(const LookupScope& scope,
                                                               NodeId parent,
                                                               std::span<const TokenId> tokens,
                                                               bool block_is_public,
                                                               SearchWork& work) const {
  if (tree_.region(parent) != kPublic || scope.salt == kPublic) {
    return tree_.best_child(parent, tree_.region(parent), tokens, work);
  }
  const SaltId first = block_is_public ? kPublic : scope.salt;
  const SaltId second = block_is_public ? scope.salt : kPublic;
  const auto found = tree_.best_child(parent, first, tokens, work);
  if (found && found->tokens_shared == tokens.size()) return found;
  const auto other = tree_.best_child(parent, second, tokens, work);
  if (!found || (other && other->tokens_shared > found->tokens_shared)) return other;
  return found;
}

Match PrefixLookup::match(const LookupScope& scope, std::span<const TokenId> prompt,
                          MatchEnd end) const {
  Match match;
  if (prompt.empty()) return match;
  const std::uint64_t block_tokens = tree_.block_tokens();
  const std::span<const TokenId> wanted = scope.findable(prompt);
  Runs runs(scope.groups, tree_.block_tokens());
  std::uint64_t blocks_served = 0;
  NodeId at = scope.root;
  for (std::uint64_t done = 0; done < wanted.size(); done += block_tokens) {
    const auto next =
        wanted.subspan(done, std::min<std::uint64_t>(block_tokens, wanted.size() - done));
    const auto found =
        child_to_follow(scope, at, next, scope.is_public(done + block_tokens), match.work);
    if (!found) break;
    const NodeId node = found->node;
    runs.add([&](std::uint32_t group) { return tree_.page(node, group).has_value(); });
    const std::uint64_t tokens = done + found->tokens_shared;
    if (found->tokens_shared < block_tokens) {
      // The match ends inside a block, whose rows are copied. Every group has its page, for even
      // the shortest window begins in the block that a match ends in.
      if (end == MatchEnd::kAnywhere && runs.serve(tokens)) {
        match.tokens = tokens;
        match.partial = node;
        match.partial_tokens = found->tokens_shared;
        blocks_served = match.nodes.size();
      }
      break;
    }
    match.nodes.push_back(node);
    at = node;
    if (runs.serve(tokens)) {
      match.tokens = tokens;
      blocks_served = match.nodes.size();
    }
  }
  match.nodes.resize(blocks_served, NodeId());
  return match;
}

// The child that begins with `begun` and has more tokens, or is whole: of the class that the block
// belongs to, else of the other class that the scope may see.
std::optional<NodeId> PrefixLookup::child_behind(const LookupScope& scope, NodeId parent,
                                                 std::span<const TokenId> begun,
                                                 bool block_is_public, SearchWork& work) const {
  const auto child_of = [&](SaltId region) -> std::optional<NodeId> {
    const auto found = tree_.closest_child(parent, region, begun, work);
    if (!found || found->tokens_shared < begun.size()) return std::nullopt;
    const bool goes_on =
        tree_.tokens(found->node).size() > begun.size() || tree_.is_whole(found->node);
    return goes_on ? std::optional(found->node) : std::nullopt;
  };
  if (tree_.region(parent) != kPublic || scope.salt == kPublic) {
    return child_of(tree_.region(parent));
  }
  const auto found = child_of(block_is_public ? kPublic : scope.salt);
  return found ? found : child_of(block_is_public ? scope.salt : kPublic);
}

std::size_t PrefixLookup::continuation(const LookupScope& scope, NodeId node,
                                       std::span<const TokenId> tokens, std::span<TokenId> room,
                                       SearchWork& work) const {
  std::uint64_t tokens_before = std::uint64_t{tree_.depth(node)} * tree_.block_tokens();
  if (tokens_before > tokens.size()) return 0;
  std::span<const TokenId> begun = tokens.subspan(tokens_before);
  if (begun.size() > tree_.block_tokens()) return 0;  // without sharing no node is stood on
  std::size_t written = 0;
  for (bool goes_on = true; goes_on && written < room.size();) {
    const std::uint64_t end = tokens_before + tree_.block_tokens();
    const auto child = child_behind(scope, node, begun, scope.is_public(end), work);
    if (!child) break;
    const auto behind = tree_.tokens(*child).subspan(begun.size());
    const auto taken = behind.first(std::min(behind.size(), room.size() - written));
    std::copy(taken.begin(), taken.end(), room.begin() + static_cast<std::ptrdiff_t>(written));
    written += taken.size();
    goes_on = tree_.is_whole(*child);
    node = *child;
    tokens_before = end;
    begun = {};
  }
  return written;
}

PrefixPath PrefixLookup::path(const LookupScope& scope, std::span<const TokenId> prompt) const {
  const std::uint64_t block_tokens = tree_.block_tokens();
  PrefixPath path = {.end = scope.root, .nodes = {}};
  SearchWork work;
  for (std::uint64_t done = 0; done + 1 < prompt.size(); done += block_tokens) {
    const auto next = prompt.subspan(done, std::min(block_tokens, prompt.size() - 1 - done));
    const auto found =
        child_to_follow(scope, path.end, next, scope.is_public(done + block_tokens), work);
    if (!found) break;
    path.nodes.push_back(found->node);
    path.tokens = done + found->tokens_shared;
    if (found->tokens_shared < block_tokens) break;
    path.end = found->node;
  }
  return path;
}

}  // namespace pagoda::kv

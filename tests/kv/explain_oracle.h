// What explanations of the cache must say, by the simplest means: all that the tree holds is read
// out after each operation and compared with what it held before; what is gone has left.
//
// All clients have a salt and one split into public and private, or none has: then a text has one
// path, and who may see which of its blocks is a matter of the split alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kv/cache.h"

namespace pagoda::kv {

using OracleText = std::vector<TokenId>;

struct OracleScope {
  std::string space = "space";
  std::string adapter = {};
  std::string salt = {};
  std::uint32_t owner = 0;
  std::uint64_t public_tokens = 0;

  // Who asks, as far as "one's own request" goes.
  std::string account() const { return owner > 0 ? "owner " + std::to_string(owner) : salt; }
};

struct ExpectedMiss {
  MissReason reason = MissReason::kNone;
  std::uint64_t matched = 0;
  std::uint64_t reachable = 0;
  // When what is missing left: one of these. Several blocks in which prompts ended alike may have
  // left in one operation.
  std::vector<Eviction> evictions = {};
  std::vector<OracleText> goes_on = {};  // what follows the match in the cache
};

class ExplainOracle {
 public:
  // (space, adapter), and the root that stands for it.
  using Roots = std::map<std::pair<std::string, std::string>, NodeId>;

  explicit ExplainOracle(const Cache& cache) : cache_(cache) {}

  Roots& roots() { return roots_; }

  // After an operation that may evict, for this account; `is_reset`: because all goes.
  void after_eviction(const std::string& account, bool is_reset) {
    const std::set<Node> before = std::exchange(nodes_, read());
    ++evictions_;
    for (const Node& node : before) {
      if (nodes_.contains(node)) continue;
      const auto used = used_.find(node);
      const Eviction left = {.cause = is_reset ? EvictionCause::kReset : EvictionCause::kRoom,
                             .left_ns = cache_.clock().time_ns,
                             .idle_ns = cache_.clock().time_ns - used->second};
      note_left(node, account, left);
      const auto end = ends_.find(node);
      if (end == ends_.end()) continue;
      Node beginning = node;
      beginning.text.resize(end->second);
      note_left(beginning, account, left);
      ends_.erase(end);
    }
  }
  // After any other operation: leaves may have grown, or made way for what begins with them.
  void after_growth() {
    const std::set<Node> before = std::exchange(nodes_, read());
    for (const Node& old : before) {
      if (nodes_.contains(old)) continue;
      const auto end = ends_.find(old);
      if (end == ends_.end()) continue;
      // What it grew into, or made way for, has where a prompt ended in it.
      const std::uint64_t tokens = end->second;
      ends_.erase(end);
      for (const Node& node : nodes_) {
        const bool same_block = (node.text.size() - 1) / cache_.options().block_tokens ==
                                (old.text.size() - 1) / cache_.options().block_tokens;
        if (same_block && old.grown_into(node)) ends_.try_emplace(node, tokens);
      }
    }
  }
  // Rows from `from` on were committed: does the prompt end in a block of theirs, and is that block
  // one of the tree's?
  void committed(const Sequence& sequence, std::uint64_t from, std::uint64_t prompt_tokens) {
    const std::uint64_t block = (prompt_tokens - 1) / cache_.options().block_tokens;
    if (prompt_tokens > sequence.tokens_computed() ||
        from >= (block + 1) * cache_.options().block_tokens) {
      return;
    }
    const auto node = cache_.pool().owner(sequence.table(0)[block]);
    if (node) ends_[node_of(*node)] = prompt_tokens;
  }
  // Someone let go of it: a request that ends, or a copy that was made of it.
  void released(NodeId node) { used_[node_of(node)] = cache_.clock().time_ns; }

  // `siblings`: all salts of the client's owner.
  ExpectedMiss explain(const OracleScope& client, const OracleText& prompt,
                       const std::vector<std::string>& siblings) const {
    ExpectedMiss truth;
    const std::uint64_t most = prompt.empty() ? 0 : prompt.size() - 1;
    const NodeId root = roots_.at({client.space, client.adapter});
    truth.matched = truth.reachable = shared(root, client.salt, prompt);
    if (prompt.size() < 2) {
      truth.reason = MissReason::kTooShort;
      return truth;
    }
    if (truth.matched == most) return truth;
    find_gone(client, root, prompt, truth);
    const auto try_as = [&](NodeId there, const std::string& salt, MissReason reason) {
      const std::uint64_t tokens = shared(there, salt, prompt);
      if (tokens <= truth.reachable) return;
      truth = {.reason = reason, .matched = truth.matched, .reachable = tokens};
    };
    for (const auto& [name, there] : roots_) {
      const bool same_space = name.first == client.space;
      if (there == root) continue;
      try_as(there, client.salt, same_space ? MissReason::kOtherAdapter : MissReason::kOtherFormat);
    }
    for (const std::string& salt : siblings) try_as(root, salt, MissReason::kOtherSalt);
    if (truth.reason != MissReason::kNone) return truth;
    truth.reason = MissReason::kNeverSeen;
    for (const Node& node : nodes_) {
      const bool goes_on = truth.matched > 0 && is_visible(node, root, client.salt) &&
                           node.text.size() > truth.matched &&
                           shared_length(node.text, prompt) == truth.matched;
      if (!goes_on) continue;
      truth.reason = MissReason::kDiffers;
      truth.goes_on.emplace_back(node.text.begin() + static_cast<std::ptrdiff_t>(truth.matched),
                                 node.text.end());
    }
    return truth;
  }

 private:
  // A block of the tree with all before it.
  struct Node {
    NodeId root;
    std::string region;
    OracleText text;

    auto operator<=>(const Node&) const = default;
    bool grown_into(const Node& node) const {
      return root == node.root && region == node.region && begins(node.text, text);
    }
  };
  struct Left {
    std::uint64_t operation = 0;
    std::string account;
    std::vector<Eviction> evictions;
  };

  void note_left(const Node& node, const std::string& account, const Eviction& eviction) {
    Left& left = left_[node];
    if (left.operation != evictions_) left = {evictions_, account, {}};
    left.evictions.push_back(eviction);
  }

  static std::uint64_t shared_length(const OracleText& a, const OracleText& b) {
    std::uint64_t i = 0;
    while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
    return i;
  }
  static bool begins(const OracleText& text, const OracleText& beginning) {
    return shared_length(text, beginning) == beginning.size();
  }
  std::string region_of(const OracleScope& client, std::uint64_t begin) const {
    return begin + cache_.options().block_tokens <= client.public_tokens ? "" : client.salt;
  }
  static bool is_visible(const Node& node, NodeId root, const std::string& salt) {
    return node.root == root && (node.region.empty() || node.region == salt);
  }

  Node node_of(NodeId at) const {
    const PrefixTree& tree = cache_.tree();
    Node node = {at, std::string(cache_.salts().text(tree.region(at))), {}};
    for (; !tree.is_root(node.root); node.root = tree.parent(node.root)) {
      const auto tokens = tree.tokens(node.root);
      node.text.insert(node.text.begin(), tokens.begin(), tokens.end());
    }
    return node;
  }
  std::set<Node> read() const {
    std::set<Node> nodes;
    std::vector<NodeId> todo;
    for (const auto& [name, root] : roots_) todo.push_back(root);
    while (!todo.empty()) {
      const NodeId at = todo.back();
      todo.pop_back();
      if (!cache_.tree().is_root(at) && cache_.tree().pages(at) > 0) nodes.insert(node_of(at));
      cache_.tree().for_each_child(at, [&](NodeId child) { todo.push_back(child); });
    }
    return nodes;
  }

  std::uint64_t shared(NodeId root, const std::string& salt, const OracleText& prompt) const {
    std::uint64_t longest = 0;
    for (const Node& node : nodes_) {
      if (is_visible(node, root, salt)) {
        longest = std::max(longest, shared_length(node.text, prompt));
      }
    }
    return prompt.empty() ? 0 : std::min<std::uint64_t>(longest, prompt.size() - 1);
  }

  void find_gone(const OracleScope& client, NodeId root, const OracleText& prompt,
                 ExpectedMiss& truth) const {
    const std::uint64_t block_tokens = cache_.options().block_tokens;
    std::uint64_t begin = truth.matched / block_tokens * block_tokens;
    std::optional<Left> first;
    const auto find = [&](std::uint64_t tokens) {
      const OracleText text(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(tokens));
      const auto left = left_.find({root, region_of(client, begin), text});
      if (left == left_.end()) return false;
      if (tokens > truth.reachable) {
        truth.reachable = std::min<std::uint64_t>(tokens, prompt.size() - 1);
        if (!first) first = left->second;
      }
      return true;
    };
    while (begin + block_tokens <= prompt.size() && find(begin + block_tokens)) {
      begin += block_tokens;
    }
    const std::uint64_t end = std::min<std::uint64_t>(begin + block_tokens, prompt.size() + 1);
    for (std::uint64_t tokens = end; tokens-- > begin + 1;) {
      if (find(tokens)) break;
    }
    if (truth.reachable == truth.matched) return;
    const bool is_reset = first->evictions.front().cause == EvictionCause::kReset;
    truth.reason = is_reset ? MissReason::kCleared : MissReason::kEvicted;
    truth.evictions = first->evictions;
    for (Eviction& eviction : truth.evictions) {
      eviction.for_others = !is_reset && first->account != client.account();
    }
  }

  const Cache& cache_;
  Roots roots_;
  std::set<Node> nodes_;
  std::map<Node, std::int64_t> used_;   // when someone last let go of it
  std::map<Node, std::uint64_t> ends_;  // where in the text a prompt last ended in the block
  std::map<Node, Left> left_;
  std::uint64_t evictions_ = 0;  // operations that may evict
};

}  // namespace pagoda::kv

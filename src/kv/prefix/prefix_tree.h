// Which tokens blocks hold: a tree whose nodes are blocks of tokens.
//
//   root (one per namespace)
//    |-- [1 2 3 4]            public
//    |     |-- [5 6 7 8]      public
//    |     `-- [5 6 9 9]      private to salt 7, found only when asking as salt 7
//    `-- [1 2]                a partial block: fewer tokens than a block, no children
//
// The children of a node fall into classes: those of the node's own region (what is public below a
// public node, what is private below a private one) and, below a public node, one class per salt.
// Within a class no child's tokens are the beginning of another's, so that at most one child can be
// followed. A search looks at one class and visits only its nodes: what other salts hold changes
// neither its result nor its work.
//
// A class is a trie of its children's tokens without the places where nothing parts: a *branch* is
// a beginning that two children or more share and after which they part.
//
//   children  [5 6 7 8] [5 6 9 9] [4 4 4 4]      branch ""  -4-> [4 4 4 4]
//                                                           -5-> branch "5 6"  -7-> [5 6 7 8]
//                                                                              -9-> [5 6 9 9]
//
// Its shape is a function of its members, and a step down is one lookup (edge_table.h): a search
// visits at most one branch per token and then a child, however many children there are. A child
// without siblings is found without a lookup. Branches keep no tokens, they name a child that has
// them: the first of the *run* of those below, for the children of a class are a list in which
// those below a branch stand together.
//
// Nodes, tokens and pages live in arrays; no allocation per node.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/large_array.h"
#include "base/token_id.h"
#include "kv/ids.h"
#include "kv/prefix/edge_table.h"

namespace pagoda::kv {

struct PrefixTreeOptions {
  std::uint32_t block_tokens = 16;
  std::uint32_t groups = 1;
  std::uint64_t hash_seed = 0;  // unknown to clients, so that they cannot aim at long probes
};

// The cost of a search: a function of what is asked and of the members of the classes looked at.
struct SearchWork {
  std::uint64_t nodes_visited = 0;  // branches included
  std::uint64_t tokens_compared = 0;
};

// Does a policy bound what the groups of a namespace keep (kv/kv_policy.h)?
enum class Bounded : std::uint8_t { kNo, kYes };

class PrefixTree {
 public:
  explicit PrefixTree(const PrefixTreeOptions& options);

  std::uint32_t block_tokens() const { return options_.block_tokens; }
  std::uint32_t groups() const { return options_.groups; }
  std::uint32_t nodes() const { return nodes_live_; }  // roots included
  // Numbers ever in use at once: those of live nodes are below it.
  std::uint32_t node_numbers() const { return static_cast<std::uint32_t>(nodes_.size()); }
  bool is_live(NodeId node) const { return at(node).live; }

  // Takes the memory of this many nodes at once: growing by doubling would take up to twice as
  // much.
  void reserve(std::size_t nodes);

  // A new namespace. Roots are never erased.
  NodeId add_root(Bounded bounded = Bounded::kNo);

  // A child with 1 to block_tokens tokens. No child of the class may begin with them or be their
  // beginning.
  NodeId insert(NodeId parent, SaltId salt, std::span<const TokenId> tokens);
  // A bare node: without children, pages and pins, and no root.
  void erase(NodeId node);
  // A sequence stands on the node of its last whole block: the node stays, even without pages.
  void pin(NodeId node) { ++at(node).pins; }
  void unpin(NodeId node);
  // Is the node's namespace one whose policy bounds every group?
  bool is_bounded(NodeId node) const { return at(node).bounded == Bounded::kYes; }
  // Is the root's namespace empty: no node hangs on the root and no sequence stands on it?
  bool is_unused(NodeId root) const { return children(root) == 0 && at(root).pins == 0; }
  bool is_bare(NodeId node) const {
    return !is_root(node) && children(node) == 0 && pages(node) == 0 && at(node).pins == 0;
  }
  // A partial block gets more tokens. It fits its class as before: it parted from every sibling
  // within the tokens it had.
  void extend(NodeId leaf, std::span<const TokenId> more);

  struct Found {
    NodeId node;
    std::uint32_t tokens_shared;  // at least 1
  };
  // The child of the class that shares the longest beginning with `tokens`; of several, one that
  // the history of this class alone decides.
  std::optional<Found> best_child(NodeId parent, SaltId salt, std::span<const TokenId> tokens,
                                  SearchWork& work) const;
  // The same, but one that shares nothing is better than none: tokens_shared may be 0.
  std::optional<Found> closest_child(NodeId parent, SaltId salt, std::span<const TokenId> tokens,
                                     SearchWork& work) const;

  bool is_root(NodeId node) const { return at(node).parent == kNone; }
  NodeId parent(NodeId node) const { return NodeId(at(node).parent); }
  // The salt of the node's region: its own or inherited. kPublic for public nodes.
  SaltId region(NodeId node) const { return at(node).region; }
  std::uint32_t children(NodeId node) const { return at(node).children; }
  // Children that have a page in the pool.
  std::uint32_t children_resident(NodeId node) const { return at(node).children_resident; }
  std::uint32_t depth(NodeId node) const { return at(node).depth; }  // root: 0
  std::span<const TokenId> tokens(NodeId node) const {
    return {tokens_.data() + std::size_t{node.value()} * options_.block_tokens, at(node).tokens};
  }
  // With how many of the node's tokens a prompt last ended; 0: none did. The tree only remembers
  // it.
  std::uint32_t prompt_end(NodeId node) const { return at(node).prompt_end; }
  void set_prompt_end(NodeId node, std::uint32_t tokens) {
    at(node).prompt_end = static_cast<std::uint16_t>(tokens);
  }
  bool is_whole(NodeId node) const { return at(node).tokens == options_.block_tokens; }

  std::optional<BlockId> page(NodeId node, std::uint32_t group) const {
    const std::uint32_t page = pages_[page_index(node, group)];
    return page == kNone ? std::nullopt : std::optional(BlockId(page));
  }
  void set_page(NodeId node, std::uint32_t group, std::optional<BlockId> page);
  std::uint32_t pages(NodeId node) const { return at(node).pages; }

  // The children of the class that have a page in the pool: how many, counted up to two, and the
  // first that is found. What other salts have changes neither the answer nor the work.
  struct ResidentChildren {
    std::uint32_t count = 0;
    NodeId first = NodeId(0);
  };
  ResidentChildren resident_children(NodeId parent, SaltId salt) const;

  // Calls visit(NodeId) for every child, in order of class and tokens.
  template <class Visit>
  void for_each_child(NodeId node, Visit&& visit) const {
    for (const std::uint32_t child : child_list(node)) visit(NodeId(child));
  }

  // Stops the program when an invariant (README: T1 to T6) does not hold. Linear, but for classes.
  void check() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // A position in a trie: a child's number, or kBranchBit and a branch's number.
  using TriePosition = std::uint32_t;
  static constexpr TriePosition kBranchBit = 1u << 31;
  static bool is_branch(TriePosition position) { return (position & kBranchBit) != 0; }

  struct Node {
    std::uint32_t parent = kNone;
    TriePosition branch_above =
        kNone;  // in the trie of its class; kNone: the class has no other member
    std::uint32_t previous = kNone;  // in the list of its class
    std::uint32_t next = kNone;
    TriePosition own_class =
        kNone;                   // top of the class of the node's own region; kNone: it is empty
    std::uint32_t children = 0;  // of all classes
    std::uint32_t children_resident = 0;
    std::uint32_t depth = 0;
    std::uint32_t pins = 0;
    SaltId region = kPublic;
    std::uint16_t tokens = 0;
    std::uint16_t pages = 0;
    std::uint16_t prompt_end = 0;
    bool live = false;
    Bounded bounded = Bounded::kNo;
  };

  struct Branch {
    TriePosition branch_above = kNone;  // kNone: the top of its class
    std::uint32_t first = kNone;        // of the run of children below
    std::uint32_t ways = 0;             // edges down: at least 2; 0: the branch is not in use
    std::uint32_t labels = 0;           // of those edges, all xored: the last one left names itself
    std::uint16_t tokens = 0;           // shared by all below
  };

  // Where a search leaves the trie.
  struct Exit {
    TriePosition position;
    std::uint32_t child;  // the position, or the first child below it
    std::uint32_t tokens_shared;
  };

  const Node& at(NodeId node) const { return nodes_[node.value()]; }
  Node& at(NodeId node) { return nodes_[node.value()]; }
  std::size_t page_index(NodeId node, std::uint32_t group) const {
    return std::size_t{node.value()} * options_.groups + group;
  }
  NodeId new_node();
  TriePosition new_branch();
  const TokenId* row(std::uint32_t node) const {
    return tokens_.data() + std::size_t{node} * options_.block_tokens;
  }

  // The top of the class that a child with `region` belongs to below `parent`, or kNone.
  TriePosition class_top(NodeId parent, SaltId region) const;
  void set_class_top(NodeId parent, SaltId region, TriePosition top);
  const Branch& branch(TriePosition position) const { return branches_[position & ~kBranchBit]; }
  Branch& branch(TriePosition position) { return branches_[position & ~kBranchBit]; }
  std::uint32_t first_below(TriePosition position) const {
    return is_branch(position) ? branch(position).first : position;
  }
  TriePosition& branch_above(TriePosition position) {
    return is_branch(position) ? branch(position).branch_above : nodes_[position].branch_above;
  }
  Exit descend(TriePosition top, std::span<const TokenId> tokens, SearchWork& work) const;
  void link(std::uint32_t node);
  void unlink(std::uint32_t node);
  void add_way(TriePosition branch, std::uint32_t label, TriePosition down);
  void hang_instead(TriePosition fresh, TriePosition old, TriePosition above);
  void list_before(std::uint32_t node, std::uint32_t next);
  void append_class(TriePosition top, std::vector<std::uint32_t>& list) const;
  std::vector<std::uint32_t> child_list(NodeId node) const;
  void check_children(NodeId node) const;
  void check_branches() const;

  PrefixTreeOptions options_;
  LargeArray<Node> nodes_;
  LargeArray<TokenId> tokens_;       // [node, block_tokens]
  LargeArray<std::uint32_t> pages_;  // [node, group]
  std::vector<std::uint32_t> dead_;  // node numbers to use again
  std::uint32_t nodes_live_ = 0;
  LargeArray<Branch> branches_;
  TriePosition branch_unused_ = kNone;  // a list, linked by branch_above
  EdgeTable edges_;                     // from a branch, by the next token, to the position below
  EdgeTable private_classes_;  // from a public node, by salt, to the top of the salt's class
};

inline void PrefixTree::set_page(NodeId node, std::uint32_t group, std::optional<BlockId> page) {
  std::uint32_t& slot = pages_[page_index(node, group)];
  Node& here = at(node);
  const bool was_resident = here.pages > 0;
  here.pages =
      static_cast<std::uint16_t>(here.pages - (slot != kNone ? 1 : 0) + (page.has_value() ? 1 : 0));
  slot = page ? page->value() : kNone;
  const bool is_resident = here.pages > 0;
  if (is_resident && !was_resident) ++at(parent(node)).children_resident;
  if (was_resident && !is_resident) --at(parent(node)).children_resident;
}

}  // namespace pagoda::kv

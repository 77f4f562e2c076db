// Knows which nodes one conversation alone has, so that what its next turn leaves behind goes first
// (README: E10).
//
// A **session** is a key that a client gives to requests, within one region (a salt). It has a few
// **branches**: conversations that requests go on with. A node of the region belongs to the branch
// whose request made it, until a request of another branch or of no session finds it; from then on
// it is nobody's and keeps its rank. A request goes on with the branch whose node it finds deepest,
// where that is deeper than the conversation's first turn, and then the branch's other nodes are
// **superseded**: they are the first to be evicted, the deepest first. Any other request begins a
// branch, and nothing is superseded.
//
// The branches of a session that ends are **closed**: their nodes are superseded where they stand,
// and leave from the end of their list, which is their deepest. So a session of any length ends at
// once; who copies its nodes elsewhere takes them a few at a time.
//
// The table is bounded: kSessionsMax sessions with kBranchesMax branches each, of which the ones
// used longest ago are forgotten, closed branches with at least one node each, and 16 bytes a node;
// it takes none where sessions are off.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kv/ids.h"
#include "kv/salt_table.h"

namespace pagoda::kv {

// A branch, as a sequence refers to it: one that was closed or forgotten is not found again under
// its number.
struct BranchRef {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kNoUse = UINT32_MAX - 1;  // of a request that only brings blocks

  std::uint32_t number = kNone;
  std::uint64_t id = 0;
};

class SessionTable {
 public:
  static constexpr std::size_t kSessionsMax = 1024;
  static constexpr std::size_t kSessionsAccountMax = 64;
  static constexpr std::size_t kBranchesMax = 8;  // of a session
  static constexpr std::size_t kKeyBytesMax = 64;

  struct Options {
    bool enabled = false;
    std::int64_t timeout_ns = 0;  // a session that was not used for so long is closed; 0: never
    std::size_t nodes = 0;        // memory for so many is taken at once
  };

  // The salts must outlive the table; a session holds its own.
  SessionTable(const Options& options, SaltTable& salts);
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  bool enabled() const { return options_.enabled; }

  // Makes room for a root or a block, which is nobody's yet.
  void node_added(NodeId node);
  // The node is about to be erased, or has no pages any more.
  void erase(NodeId node) {
    if (enabled()) unlink(node);
  }

  // A request that begins: what it found, and how it counts.
  struct Opening {
    SaltId salt;
    std::string_view key;            // empty: of no session
    BranchRef before = {};           // what an earlier opening of the same request was given
    std::span<const NodeId> found;   // whole blocks, from the first
    std::optional<NodeId> partial;   // whose first rows are copied
    std::uint64_t tokens_found = 0;  // in all
    std::uint32_t block_tokens = 1;
    std::uint64_t first_turn_tokens = 0;  // of its prompt, up to the end of the first turn
    std::int64_t now_ns = 0;
  };
  // Notes the uses, and supersedes what the request leaves behind and may_supersede(node) allows. A
  // request that was opened before leaves nothing more behind. The request holds its branch.
  BranchRef open(const Opening& opening, const std::function<bool(NodeId)>& may_supersede);
  // One more sequence holds the branch, or one less: a session with a branch that is held is in
  // use.
  void hold(const BranchRef& branch);
  void release(const BranchRef& branch, std::int64_t now_ns);
  // A request of the branch made the node.
  void made(const BranchRef& branch, NodeId node);
  // A request of the branch, or of none, computed what the node has: that is a use like finding it.
  void passed(const BranchRef& branch, NodeId node) {
    if (!enabled() || branch.number == BranchRef::kNoUse) return;
    const std::uint32_t owner = links_[node.value()].owner;
    if (owner != kNobody && !(owner == branch.number && is_live(branch))) unlink(node);
  }

  // The first of those nodes that are superseded, in the order in which they are to go.
  std::optional<NodeId> first_superseded() const;
  bool is_superseded(NodeId node) const {
    if (!enabled()) return false;
    const std::uint32_t owner = links_[node.value()].owner;
    return owner == kSuperseded || (owner != kNobody && branches_[owner].is_closed);
  }
  // The node cannot go or has been used: it keeps its rank.
  void spare(NodeId node) { unlink(node); }

  // Ends a session: all that it alone has is superseded. Returns how many nodes that are; nothing
  // where there is no such session.
  std::optional<std::uint64_t> close(SaltId salt, std::string_view key);
  // Ends one session that was not used for too long, if there is one. False: there is none.
  bool close_due(std::int64_t now_ns);
  // When close_due() has something to do at the earliest; nothing: never, as things stand.
  std::optional<std::int64_t> next_due_ns() const;
  // Supersedes a chain of nodes, whose first comes first, as if a session ended that has them.
  void close_chain(std::span<const NodeId> nodes);
  // Returns nodes of closed branches, a chain's beginning first, each once and at most so many.
  std::vector<NodeId> take_closed(std::size_t nodes_max);
  bool has_closed() const { return to_take_ != kNone; }

  // Forgets sessions: of an owner's salts, or all. What they have keeps its rank.
  void forget(OwnerId owner);
  void forget_all();

  std::size_t sessions() const { return sessions_.size(); }
  std::uint64_t nodes_superseded() const { return superseded_.nodes + nodes_closed_; }

  // Stops the program when lists and counts contradict each other. Linear.
  void check() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kNobody = UINT32_MAX;  // owners besides branches
  static constexpr std::uint32_t kSuperseded = UINT32_MAX - 1;

  struct Link {
    std::uint32_t owner = kNobody;
    std::uint32_t next = kNone;
    std::uint32_t previous = kNone;
    std::uint32_t found_by = 0;  // the number of the last opening that found it
  };
  struct NodeList {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint64_t nodes = 0;
  };
  struct Session {
    SaltId salt;
    std::string key;
    std::int64_t used_ns = 0;
    std::vector<std::uint32_t> branches = {};  // used longest ago first
  };
  using Sessions = std::list<Session>;  // used longest ago first
  struct Branch {
    std::uint64_t id = 0;  // 0: not in use
    NodeList list = {};    // in the order in which they were made: parents before children
    Sessions::iterator session = {};  // valid until the branch is closed
    std::uint32_t holders = 0;        // sequences
    bool is_closed = false;
    // Closed branches are a list; to_take is the node that take_closed() comes to next.
    std::uint32_t previous_closed = kNone;
    std::uint32_t next_closed = kNone;
    std::uint32_t to_take = kNone;
  };

  bool is_live(const BranchRef& branch) const {
    return branch.number < branches_.size() && branches_[branch.number].id == branch.id;
  }
  static std::string name_of(SaltId salt, std::string_view key);
  Sessions::iterator find_or_open(SaltId salt, std::string_view key, std::int64_t now_ns);
  void use(Sessions::iterator session, std::int64_t now_ns);
  bool is_in_use(const Session& session) const;
  void make_room_for(SaltId salt);
  void forget(Sessions::iterator session);
  std::uint64_t end(Sessions::iterator session);
  std::optional<std::uint32_t> branch_gone_on(const Session& session, const Opening& opening) const;
  std::uint32_t begin_branch(Sessions::iterator session);
  std::uint32_t new_branch();
  void free_branch(std::uint32_t branch);
  void forget_branch(std::uint32_t branch);
  void close_branch(std::uint32_t branch);
  void drop_closed(std::uint32_t branch);
  void supersede(std::uint32_t branch, const std::function<bool(NodeId)>& may_supersede);
  void note_found(const Opening& opening, std::uint32_t branch);
  NodeList& list_of(std::uint32_t owner) {
    return owner == kSuperseded ? superseded_ : branches_[owner].list;
  }
  void append(std::uint32_t owner, NodeId node);
  void unlink(NodeId node);
  void check_list(std::uint32_t owner, const NodeList& list) const;
  void check_closed(std::uint64_t& nodes, std::size_t& branches) const;

  Options options_;
  SaltTable& salts_;
  std::vector<Link> links_;  // [node]
  std::vector<Branch> branches_;
  std::vector<std::uint32_t> branches_unused_;
  NodeList superseded_;
  std::uint32_t first_closed_ = kNone;  // branches, in the order in which they were closed
  std::uint32_t last_closed_ = kNone;
  std::uint32_t to_take_ = kNone;  // the closed branch that take_closed() comes to next
  std::uint64_t nodes_closed_ = 0;
  Sessions sessions_;
  std::unordered_map<std::string, Sessions::iterator> by_name_;
  std::uint32_t openings_ = 0;
  std::uint64_t branch_ids_ = 0;
};

}  // namespace pagoda::kv

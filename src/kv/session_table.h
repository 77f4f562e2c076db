// Knows which nodes one conversation alone has, so that what its next turn leaves behind goes first
// (README: E10).
//
// A **session** is a key that a client gives to requests, within one region (a salt). It has a few
// **branches**: conversations that requests go on with. A node belongs to the branch whose request
// made it, until a request of another branch or of no session finds it; from then on it is nobody's
// and keeps its rank. A request goes on with the branch whose node it finds deepest, where that is
// deeper than the conversation's first turn, and then the branch's other nodes are **superseded**:
// they are the first to be evicted, the deepest first. Any other request begins a branch, and
// nothing is superseded.
//
// The table is bounded: kSessionsMax sessions with kBranchesMax branches each, of which the ones
// used longest ago are forgotten, and 16 bytes a node; it takes none where sessions are off.
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

// A branch, as a sequence refers to it: one that was forgotten is not found again under its number.
struct BranchRef {
  static constexpr std::uint32_t kNone = UINT32_MAX;

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
    if (enabled()) unlink(node, kNobody);
  }

  // A request that begins: what it found, and how it counts.
  struct Opening {
    SaltId salt;
    std::string_view key;            // empty: of no session
    std::span<const NodeId> found;   // whole blocks, from the first
    std::optional<NodeId> partial;   // whose first rows are copied
    std::uint64_t tokens_found = 0;  // in all
    std::uint32_t block_tokens = 1;
    std::uint64_t first_turn_tokens = 0;  // of its prompt, up to the end of the first turn
    std::int64_t now_ns = 0;
  };
  // Notes the uses, and supersedes what the request leaves behind, but for nodes that are in use.
  BranchRef open(const Opening& opening, const std::function<bool(NodeId)>& is_idle);
  // A request of the branch made the node.
  void made(const BranchRef& branch, NodeId node);
  // A request of the branch, or of none, computed what the node has: that is a use like finding it.
  void passed(const BranchRef& branch, NodeId node) {
    if (!enabled()) return;
    const std::uint32_t owner = links_[node.value()].owner;
    if (owner != kNobody && !(owner == branch.number && is_live(branch))) unlink(node, kNobody);
  }

  // These nodes, in this order, are to go behind those that are superseded already.
  void supersede(std::span<const NodeId> nodes);
  // Nodes that are superseded, in the order in which they are to go.
  std::optional<NodeId> first_superseded() const;
  bool is_superseded(NodeId node) const {
    return enabled() && links_[node.value()].owner == kSuperseded;
  }
  // The node cannot go or has been used: it keeps its rank.
  void spare(NodeId node) { unlink(node, kNobody); }

  // Ends a session: all that it alone has is superseded. Returns those nodes, the deepest first;
  // nothing where there is no such session.
  std::optional<std::vector<NodeId>> close(SaltId salt, std::string_view key,
                                           const std::function<std::uint32_t(NodeId)>& depth);
  // Ends one session whose time is over, if there is one.
  std::optional<std::vector<NodeId>> close_due(std::int64_t now_ns,
                                               const std::function<std::uint32_t(NodeId)>& depth);
  bool is_due(std::int64_t now_ns) const;

  std::size_t sessions() const { return sessions_.size(); }
  std::uint64_t nodes_superseded() const { return superseded_.nodes; }

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
  struct Branch {
    std::uint64_t id = 0;  // 0: not in use
    NodeList list;         // in the order in which they were made
    const void* session = nullptr;
  };
  struct Session {
    SaltId salt;
    std::string key;
    std::int64_t used_ns = 0;
    std::vector<std::uint32_t> branches = {};  // used longest ago first
  };
  using Sessions = std::list<Session>;  // used longest ago first

  bool is_live(const BranchRef& branch) const {
    return branch.number < branches_.size() && branches_[branch.number].id == branch.id;
  }
  static std::string name_of(SaltId salt, std::string_view key);
  Session& find_or_open(SaltId salt, std::string_view key, std::int64_t now_ns);
  void make_room_for(SaltId salt);
  void forget(Sessions::iterator session);
  std::vector<NodeId> end(Sessions::iterator session,
                          const std::function<std::uint32_t(NodeId)>& depth);
  std::optional<std::uint32_t> branch_gone_on(const Session& session, const Opening& opening) const;
  std::uint32_t begin_branch(Session& session);
  void forget_branch(std::uint32_t branch);
  void supersede(std::uint32_t branch, const std::function<bool(NodeId)>& is_idle);
  void note_found(const Opening& opening, std::uint32_t branch);
  NodeList& list_of(std::uint32_t owner) {
    return owner == kSuperseded ? superseded_ : branches_[owner].list;
  }
  void append(std::uint32_t owner, NodeId node);
  void unlink(NodeId node, std::uint32_t owner_after);
  void check_list(std::uint32_t owner, const NodeList& list) const;

  Options options_;
  SaltTable& salts_;
  std::vector<Link> links_;  // [node]
  std::vector<Branch> branches_;
  std::vector<std::uint32_t> branches_unused_;
  NodeList superseded_;
  Sessions sessions_;
  std::unordered_map<std::string, Sessions::iterator> by_name_;
  std::uint32_t openings_ = 0;
  std::uint64_t branch_ids_ = 0;
};

}  // namespace pagoda::kv

// Knows which nodes are retained: by whom, until when and with which priority (README: E8).
//
// A **grant** is what one request was given: a list of nodes, linked through their records. A node
// is in at most one grant; a later grant that lasts at least as long with at least the priority
// takes the node over, and its account is charged. When a grant's time is over, its nodes are
// released a few at a time. Each account (ids.h) has a budget, and all together have half the
// pool, so that retaining never leaves others without a cache.
//
// The table is bounded: kGrantsMax grants, 12 bytes a node; it takes none where the budget is 0. An
// account has at most as many grants as are left for all, so that whoever comes finds some: alone
// it has half of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "kv/evict/linked_heaps.h"
#include "kv/ids.h"
#include "kv/retention.h"
#include "kv/salt_table.h"

namespace pagoda::kv {

class RetentionTable {
 public:
  static constexpr std::uint32_t kGrantsMax = 2048;

  struct Options {
    std::uint64_t blocks_account_max = 0;  // 0: nothing is retained
    std::uint64_t blocks_max = 0;          // of all accounts
    std::uint32_t node_blocks = 1;         // that a node is charged for
    std::size_t nodes = 0;                 // memory for so many is taken at once
  };

  // The salts must outlive the table; a grant holds the one it was made for.
  RetentionTable(const Options& options, SaltTable& salts);

  // Nothing can be retained when the budget is 0.
  bool enabled() const { return options_.blocks_account_max > 0; }

  // Makes room for a root or a block, which is not retained yet.
  void node_added(NodeId node) {
    if (!enabled()) return;
    if (node.value() >= nodes_.size()) nodes_.resize(node.value() + 1);
    nodes_[node.value()] = {};
  }

  bool contains(NodeId node) const { return enabled() && is_grant(nodes_[node.value()].grant); }
  // Was the node retained until the time of its grant was over?
  bool has_expired(NodeId node) const {
    return enabled() && nodes_[node.value()].grant == kExpired;
  }
  // Whom a node that is retained is charged to.
  AccountId account(NodeId node) const { return grants_[nodes_[node.value()].grant].account; }
  // The priority of a node that is retained.
  std::uint32_t priority(NodeId node) const { return grants_[nodes_[node.value()].grant].priority; }

  // Counts the nodes that a grant would take. An error names the limit that the grant would pass.
  Result<std::uint64_t> count_taken(SaltId salt, const RetainTerms& terms,
                                    std::span<const NodeId> nodes) const;
  // How many of the nodes, from the first, a grant may have: all where count_taken() allows them.
  std::size_t nodes_allowed(SaltId salt, const RetainTerms& terms,
                            std::span<const NodeId> nodes) const;
  // Grants the nodes that count_taken() counted and allowed, and calls taken(node) for each.
  template <class Taken>
  void grant(SaltId salt, const RetainTerms& terms, std::span<const NodeId> nodes, Taken&& taken) {
    const std::uint32_t grant = open_grant(salt, terms);
    for (const NodeId node : nodes) {
      if (!takes(terms, node)) continue;
      erase(node);
      insert(grant, node);
      taken(node);
    }
    close_if_empty(grant);
  }
  // The node is retained no more; nothing happens where it is not.
  void erase(NodeId node) {
    if (contains(node)) remove(node);
  }
  // The same for a node that is due: has_expired() says so from now on.
  void expire(NodeId node);
  // Returns a node whose grant's time is over, if there is one.
  std::optional<NodeId> due(std::int64_t now_ns) const;

  std::uint64_t blocks(AccountId account) const {
    return account.value() < accounts_.size() ? accounts_[account.value()].blocks : 0;
  }
  // Blocks of all accounts.
  std::uint64_t blocks() const { return blocks_in_all_; }
  // Changes with every node that is retained or released.
  std::uint64_t version() const { return version_; }
  // The grants that run, soonest to end first: at most kGrantsMax.
  std::vector<GrantStats> grants() const;

  // Stops the program when lists, counts and accounts contradict each other. Linear.
  void check() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kExpired = UINT32_MAX - 1;  // in place of a grant
  static bool is_grant(std::uint32_t grant) { return grant < kGrantsMax; }

  struct Grant {
    SaltId salt;  // of the request that asked
    AccountId account;
    std::int64_t until_ns = 0;
    std::uint32_t priority = 0;
    std::uint32_t first = kNone;  // of its nodes
    std::uint32_t nodes = 0;
    bool is_open = false;
  };
  struct Link {
    std::uint32_t grant = kNone;
    std::uint32_t next = kNone;
    std::uint32_t previous = kNone;
  };

  // An account is charged for its blocks and for its grants, both bounded.
  struct Charge {
    std::uint64_t blocks = 0;
    std::uint32_t grants = 0;
    bool operator==(const Charge&) const = default;
  };

  bool takes(const RetainTerms& terms, NodeId node) const;
  std::uint32_t grants_of(AccountId account) const {
    return account.value() < accounts_.size() ? accounts_[account.value()].grants : 0;
  }
  bool may_open_grant(AccountId account) const { return grants_of(account) < unused_.size(); }
  std::uint32_t open_grant(SaltId salt, const RetainTerms& terms);
  void close_if_empty(std::uint32_t grant);
  void insert(std::uint32_t grant, NodeId node);
  void remove(NodeId node);

  Options options_;
  SaltTable& salts_;
  std::vector<Grant> grants_;
  std::vector<std::uint32_t> unused_;  // grants
  LinkedHeaps by_end_;                 // of grants that are open
  LinkedHeaps::Item first_to_end_ = LinkedHeaps::kNone;
  std::vector<Link> nodes_;       // [node]
  std::vector<Charge> accounts_;  // [account]
  std::uint64_t blocks_in_all_ = 0;
  std::uint64_t version_ = 0;
};

}  // namespace pagoda::kv

#include "kv/retention_table.h"

#include <algorithm>
#include <string>

#include "base/assert.h"

namespace pagoda::kv {

RetentionTable::RetentionTable(const Options& options, SaltTable& salts)
    : options_(options),
      salts_(salts),
      grants_(enabled() ? kGrantsMax : 0),
      by_end_(enabled() ? kGrantsMax : 0) {
  if (!enabled()) return;
  nodes_.reserve(options.nodes);
  unused_.reserve(kGrantsMax);
  for (std::uint32_t i = kGrantsMax; i-- > 0;) unused_.push_back(i);
}

Result<std::uint64_t> RetentionTable::count_taken(SaltId salt, const RetainTerms& terms,
                                                  std::span<const NodeId> nodes) const {
  const AccountId account = salts_.account(salt);
  std::uint64_t taken = 0;
  std::uint64_t new_to_account = 0;
  std::uint64_t new_to_all = 0;
  for (const NodeId node : nodes) {
    if (!takes(terms, node)) continue;
    ++taken;
    const std::uint32_t before = nodes_[node.value()].grant;
    const bool is_new = !is_grant(before);
    new_to_all += is_new ? 1 : 0;
    new_to_account += is_new || grants_[before].account != account ? 1 : 0;
  }
  const auto refuse = [&](const char* whose, std::uint64_t more, std::uint64_t now,
                          std::uint64_t most) {
    return Error{ErrorCode::kExhausted,
                 std::to_string(more * options_.node_blocks) + " blocks more, but " + whose +
                     " keeps " + std::to_string(now) + " of at most " + std::to_string(most)};
  };
  if (blocks(account) + new_to_account * options_.node_blocks > options_.blocks_account_max) {
    return refuse("the tenant", new_to_account, blocks(account), options_.blocks_account_max);
  }
  if (blocks_in_all_ + new_to_all * options_.node_blocks > options_.blocks_max) {
    return Error{ErrorCode::kExhausted, "all tenants together keep as much as is allowed, " +
                                            std::to_string(options_.blocks_max) + " blocks"};
  }
  if (taken > 0 && !may_open_grant(account)) {
    return Error{ErrorCode::kExhausted, "the tenant has " + std::to_string(grants_of(account)) +
                                            " grants that run; left for all are " +
                                            std::to_string(unused_.size())};
  }
  return taken;
}

std::size_t RetentionTable::nodes_allowed(SaltId salt, const RetainTerms& terms,
                                          std::span<const NodeId> nodes) const {
  const AccountId account = salts_.account(salt);
  const bool has_grant = may_open_grant(account);
  std::uint64_t blocks_account = blocks(account);
  std::uint64_t blocks_all = blocks_in_all_;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!takes(terms, nodes[i])) continue;
    if (!has_grant) return i;
    const std::uint32_t before = nodes_[nodes[i].value()].grant;
    const bool is_new = !is_grant(before);
    if (is_new) blocks_all += options_.node_blocks;
    if (is_new || grants_[before].account != account) blocks_account += options_.node_blocks;
    if (blocks_account > options_.blocks_account_max || blocks_all > options_.blocks_max) return i;
  }
  return nodes.size();
}

// A grant takes a node over that would end no later and has no more priority.
bool RetentionTable::takes(const RetainTerms& terms, NodeId node) const {
  const std::uint32_t before = nodes_[node.value()].grant;
  if (!is_grant(before)) return true;
  const Grant& grant = grants_[before];
  return terms.until_ns >= grant.until_ns && terms.priority >= grant.priority;
}

std::uint32_t RetentionTable::open_grant(SaltId salt, const RetainTerms& terms) {
  const AccountId account = salts_.account(salt);
  const std::uint32_t grant = unused_.back();
  unused_.pop_back();
  grants_[grant] = {.salt = salt,
                    .account = account,
                    .until_ns = terms.until_ns,
                    .priority = terms.priority,
                    .first = kNone,
                    .nodes = 0,
                    .is_open = true};
  salts_.hold(salt);
  if (account.value() >= accounts_.size()) accounts_.resize(account.value() + 1);
  ++accounts_[account.value()].grants;
  by_end_.push(first_to_end_, grant, -terms.until_ns);
  return grant;
}

void RetentionTable::close_if_empty(std::uint32_t grant) {
  if (grants_[grant].nodes > 0) return;
  by_end_.erase(first_to_end_, grant);
  --accounts_[grants_[grant].account.value()].grants;
  salts_.release(grants_[grant].salt);
  grants_[grant] = {};
  unused_.push_back(grant);
}

void RetentionTable::insert(std::uint32_t grant, NodeId node) {
  Grant& to = grants_[grant];
  nodes_[node.value()] = {.grant = grant, .next = to.first, .previous = kNone};
  if (to.first != kNone) nodes_[to.first].previous = node.value();
  to.first = node.value();
  ++to.nodes;
  accounts_[to.account.value()].blocks += options_.node_blocks;
  blocks_in_all_ += options_.node_blocks;
  ++version_;
}

void RetentionTable::remove(NodeId node) {
  const Link link = nodes_[node.value()];
  Grant& from = grants_[link.grant];
  (link.previous == kNone ? from.first : nodes_[link.previous].next) = link.next;
  if (link.next != kNone) nodes_[link.next].previous = link.previous;
  nodes_[node.value()] = {};
  --from.nodes;
  accounts_[from.account.value()].blocks -= options_.node_blocks;
  blocks_in_all_ -= options_.node_blocks;
  ++version_;
  close_if_empty(link.grant);
}

void RetentionTable::expire(NodeId node) {
  erase(node);
  nodes_[node.value()].grant = kExpired;
}

std::optional<NodeId> RetentionTable::due(std::int64_t now_ns) const {
  if (first_to_end_ == LinkedHeaps::kNone) return std::nullopt;
  const Grant& grant = grants_[first_to_end_];
  if (grant.until_ns > now_ns) return std::nullopt;
  return NodeId(grant.first);
}

std::vector<GrantStats> RetentionTable::grants() const {
  std::vector<GrantStats> grants;
  for (const Grant& grant : grants_) {
    if (!grant.is_open) continue;
    grants.push_back({.is_public = grant.salt == kPublic,
                      .blocks = std::uint64_t{grant.nodes} * options_.node_blocks,
                      .priority = grant.priority,
                      .until_ns = grant.until_ns});
  }
  std::sort(grants.begin(), grants.end(),
            [](const GrantStats& a, const GrantStats& b) { return a.until_ns < b.until_ns; });
  return grants;
}

void RetentionTable::check() const {
  std::vector<Charge> accounts(accounts_.size());
  std::uint64_t nodes_listed = 0;
  std::uint32_t open = 0;
  for (std::uint32_t i = 0; i < grants_.size(); ++i) {
    const Grant& grant = grants_[i];
    if (!grant.is_open) continue;
    ++open;
    std::uint32_t seen = 0;
    std::uint32_t previous = kNone;
    for (std::uint32_t node = grant.first; node != kNone; node = nodes_[node].next) {
      ASSERT(nodes_[node].grant == i && nodes_[node].previous == previous,
             "R1: a grant's nodes are a list");
      previous = node;
      ++seen;
    }
    ASSERT(seen == grant.nodes && seen > 0, "R1: the count of a grant's nodes is true");
    ASSERT(by_end_.contains(i), "R1: every grant ends");
    accounts[grant.account.value()].blocks += std::uint64_t{seen} * options_.node_blocks;
    ++accounts[grant.account.value()].grants;
    nodes_listed += seen;
  }
  ASSERT(by_end_.check(first_to_end_) == open, "R1: what ends is a grant");
  const auto marked = std::count_if(nodes_.begin(), nodes_.end(),
                                    [](const Link& link) { return is_grant(link.grant); });
  ASSERT(nodes_listed == static_cast<std::uint64_t>(marked), "R1: every node is in its list");
  ASSERT(accounts == accounts_, "R2: accounts are charged for what they keep");
  ASSERT(blocks_in_all_ == nodes_listed * options_.node_blocks &&
             blocks_in_all_ <= options_.blocks_max,
         "R2: what is kept in all is known and within its bound");
  for (const Charge& charge : accounts) {
    ASSERT(charge.blocks <= options_.blocks_account_max, "R2: every account is within its budget");
  }
}

}  // namespace pagoda::kv

#include "kv/evict/evictor.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/assert.h"

namespace pagoda::kv {
namespace {

constexpr int kNodesReleasedAtOnce = 64;

}  // namespace

Evictor::Evictor(const CacheOptions& options, std::size_t nodes, const Parts& parts)
    : in_(parts),
      rules_(parts.pool, parts.tree, options.groups),
      guards_(nodes, parts.pool, parts.tree, rules_),
      candidates_(options, {.pool = parts.pool,
                            .tree = parts.tree,
                            .salts = parts.salts,
                            .retention = parts.retention,
                            .sessions = parts.sessions,
                            .identities = parts.identities,
                            .rules = rules_,
                            .clock = parts.clock}) {}

void Evictor::page_attached(NodeId node, BlockId block, const RequestStats& request) {
  candidates_.page_attached(node, block, request);
  in_.salts.charge(in_.tree.region(node));
  candidates_.region_charged(in_.tree.region(node));
  guards_.update(node);
}

void Evictor::make_room(std::uint64_t blocks, std::uint32_t tenant) {
  while (in_.pool.blocks_free() < blocks) {
    const bool evicted = evict_next({.tenant = tenant});
    ASSERT(evicted, "E6: what is available can be evicted");
  }
}

void Evictor::clear() {
  in_.events.begin_clear();
  while (evict_next({.is_reset = true})) {
  }
  in_.events.end_clear();
}

// Goes from every page that may be evicted upwards, as each makes its parent's evictable: one round
// over the pool does, unless window pages kept the other pages of their nodes back.
void Evictor::clear(OwnerId owner) {
  const auto may_go = [&](std::optional<BlockId> block) {
    return block && in_.pool.state(*block) == BlockState::kIdle &&
           is_owned(in_.pool.owner(*block).value(), owner) && rules_.is_evictable(*block);
  };
  for (bool went = true; went;) {
    went = false;
    for (std::uint32_t i = 0; i < in_.pool.blocks(); ++i) {
      std::optional<BlockId> block(i);
      while (may_go(block)) {
        const NodeId parent = in_.tree.parent(in_.pool.owner(*block).value());
        const bool parent_stays = !in_.tree.is_root(parent) && in_.tree.pages(parent) > 0;
        evict(*block, {.is_reset = true});
        went = true;
        block = parent_stays ? in_.tree.page(parent, 0) : std::nullopt;
      }
    }
  }
}

std::uint64_t Evictor::retire(OwnerId owner) {
  const std::uint64_t before = blocks_evicted_;
  in_.salts.retire(owner);
  clear(owner);
  return blocks_evicted_ - before;
}

bool Evictor::is_owned(NodeId node, OwnerId owner) const {
  const SaltId region = in_.tree.region(node);
  return region != kPublic && in_.salts.owner(region) == owner;
}

// Evicts the pages of the node that nobody holds, and then those before it that stayed for its
// sake (README: I6).
void Evictor::drop_retired(NodeId node) {
  const PrefixTree& tree = in_.tree;
  for (bool went = true; went && !tree.is_root(node) && in_.salts.is_retired(tree.region(node));) {
    went = false;
    const NodeId parent = tree.parent(node);
    const bool parent_stays = !tree.is_root(parent) && tree.pages(parent) > 0;
    for (std::uint32_t group = 0; group < tree.groups() && tree.is_live(node); ++group) {
      const std::optional<BlockId> page = tree.page(node, group);
      if (!page || !rules_.is_evictable(*page)) continue;
      evict(*page, {.is_reset = true});
      went = true;
    }
    if (!parent_stays) return;
    node = parent;
  }
}

bool Evictor::evict_next(Trigger trigger) {
  const std::optional<EvictionCandidates::Victim> victim = candidates_.pop();
  if (!victim) return false;
  trigger.by_quota = victim->by_quota;
  trigger.is_superseded = victim->is_superseded;
  evict(victim->block, trigger);
  return true;
}

EvictionCause Evictor::cause_of(NodeId node, const Trigger& trigger) const {
  if (trigger.is_reset) return EvictionCause::kReset;
  if (trigger.is_superseded) return EvictionCause::kSuperseded;
  if (trigger.by_quota) return EvictionCause::kQuota;
  return in_.retention.has_expired(node) ? EvictionCause::kRetained : EvictionCause::kRoom;
}

void Evictor::evict(BlockId block, const Trigger& trigger) {
  const NodeId node = in_.pool.owner(block).value();
  const std::uint32_t group = rules_.group_of(node, block);
  const std::uint64_t evicted_before = blocks_evicted_;
  const EvictionCause cause = cause_of(node, trigger);
  in_.history.page_leaves(node, block, cause, trigger.tenant);
  if (rules_.is_window(node, group)) {
    take_page(node, group);
    settle(node);
  } else {
    // Without a page of a full group nothing here or below can be matched.
    take_pages(node);
  }
  blocks_evicted_by_cause_[static_cast<std::size_t>(cause)] += blocks_evicted_ - evicted_before;
}

// The node loses its page. When nobody holds the block it is free; one that a sequence still fills
// or a copy still reads is freed when it is released.
void Evictor::take_page(NodeId node, std::uint32_t group) {
  const BlockId block = in_.tree.page(node, group).value();
  candidates_.page_left(node, block);
  in_.events.page_removed(node, group);
  in_.tree.set_page(node, group, std::nullopt);
  if (in_.tree.pages(node) == 0) {
    in_.retention.erase(node);
    in_.sessions.erase(node);
  }
  in_.salts.discharge(in_.tree.region(node));
  candidates_.region_charged(in_.tree.region(node));
  if (in_.pool.state(block) == BlockState::kIdle) {
    in_.pool.evict(block);
    ++blocks_evicted_;
  } else {
    in_.pool.set_owner(block, std::nullopt);
  }
  guards_.page_removed(node);
}

void Evictor::take_pages(NodeId node) {
  for (std::uint32_t group = 0; group < in_.tree.groups(); ++group) {
    if (in_.tree.page(node, group)) take_page(node, group);
  }
  settle(node);
}

void Evictor::settle(NodeId node) {
  const PrefixTree& tree = in_.tree;
  while (tree.is_bare(node)) {
    const NodeId parent = tree.parent(node);
    erase(node);
    node = parent;
  }
  if (!tree.is_root(node) && tree.pages(node) == 0) node = tree.parent(node);
  if (!tree.is_root(node)) candidates_.push_node(node);
}

void Evictor::erase(NodeId node) {
  const SaltId region = in_.tree.region(node);
  in_.retention.erase(node);
  in_.sessions.erase(node);
  in_.tree.erase(node);
  in_.salts.release(region);
}

Result<Retained> Evictor::retain(SaltId salt, const RetainTerms& terms,
                                 std::span<const NodeId> nodes) {
  const std::uint64_t block_tokens = in_.tree.block_tokens();
  const std::uint64_t blocks = std::min<std::uint64_t>(terms.tokens / block_tokens, nodes.size());
  if (blocks == 0) {
    return Error{ErrorCode::kOutOfRange, std::to_string(terms.tokens) +
                                             " tokens are less than a block of " +
                                             std::to_string(block_tokens)};
  }
  auto kept = nodes.first(blocks);
  RetainTerms bounded = terms;
  bounded.priority = std::min(bounded.priority, kRetainPriorityMax);
  std::string limit;
  Result<std::uint64_t> taken = in_.retention.count_taken(salt, bounded, kept);
  if (!taken.ok() && terms.may_clip) {
    const std::size_t allowed = in_.retention.nodes_allowed(salt, bounded, kept);
    if (allowed == 0) return taken.error();
    limit = taken.error().message;
    kept = kept.first(allowed);
    taken = in_.retention.count_taken(salt, bounded, kept);
  }
  if (!taken.ok()) return taken.error();
  if (taken.value() > 0) {
    for (const NodeId node : kept) {
      if (!in_.retention.contains(node)) candidates_.forget_node(node);
    }
    in_.retention.grant(salt, bounded, kept, [this](NodeId node) { candidates_.push_node(node); });
  }
  return Retained{.tokens = kept.size() * block_tokens,
                  .blocks = kept.size() * in_.tree.groups(),
                  .blocks_charged = taken.value() * in_.tree.groups(),
                  .limit = std::move(limit)};
}

void Evictor::end_own_grant(NodeId node) {
  if (!in_.retention.contains(node) || is_retained_by_others(node)) return;
  candidates_.forget_node(node);
  in_.retention.erase(node);
  candidates_.push_node(node);
}

void Evictor::release_due() {
  for (int i = 0; i < kNodesReleasedAtOnce; ++i) {
    const std::optional<NodeId> node = in_.retention.due(in_.clock.time_ns);
    if (!node) return;
    candidates_.forget_node(*node);
    in_.retention.expire(*node);
    candidates_.push_node(*node);
  }
}

namespace {

// Candidates that were looked at stay candidates, also where memory runs out.
struct GivenBack {
  EvictionCandidates& candidates;
  std::vector<BlockId> blocks = {};

  ~GivenBack() {
    for (const BlockId block : blocks) candidates.push(block);
  }
};

}  // namespace

std::vector<NodeId> Evictor::next_to_leave(std::size_t nodes_max) {
  std::vector<NodeId> leaving;
  std::vector<NodeId> spared;
  GivenBack looked_at = {candidates_};
  std::unordered_set<NodeId> known;
  // Superseded blocks go before all others, and nobody will ask for them. While there are more of
  // them than a step takes nothing else leaves.
  constexpr std::uint64_t kSupersededPassed = 512;
  const std::uint64_t passed = std::min(in_.sessions.nodes_superseded(), kSupersededPassed);
  const std::size_t look_max = (2 * nodes_max + passed) * in_.tree.groups();
  looked_at.blocks.reserve(look_max);
  while (leaving.size() < nodes_max && looked_at.blocks.size() < look_max) {
    const auto victim = candidates_.pop(EvictionCandidates::Chance::kNone);
    if (!victim) break;
    looked_at.blocks.push_back(victim->block);
    const NodeId node = in_.pool.owner(victim->block).value();
    if (!in_.tree.is_whole(node) || !known.insert(node).second) continue;
    if (in_.sessions.is_superseded(node)) continue;
    (candidates_.would_spare(*victim) ? spared : leaving).push_back(node);
  }
  spared.resize(std::min(spared.size(), nodes_max - leaving.size()));
  leaving.insert(leaving.end(), spared.begin(), spared.end());
  return leaving;
}

void Evictor::check() const {
  candidates_.check();
  std::vector<std::uint64_t> charged(in_.salts.numbers(), 0);
  for (std::uint32_t i = 0; i < in_.pool.blocks(); ++i) {
    const BlockId block(i);
    if (in_.pool.state(block) == BlockState::kFree) continue;
    const std::optional<NodeId> node = in_.pool.owner(block);
    ASSERT(node || in_.pool.references(block) > 0, "C1: what nobody holds and no node has is free");
    if (!node) continue;
    bool known = false;
    for (std::uint32_t group = 0; group < in_.tree.groups(); ++group) {
      known = known || in_.tree.page(*node, group) == block;
    }
    ASSERT(known, "C2: a block's owner has it as a page");
    candidates_.check(block);
    ASSERT(!in_.salts.is_retired(in_.tree.region(*node)) || !rules_.is_evictable(block),
           "C8: what was retired goes when nobody holds it");
    ++charged[in_.tree.region(*node).value()];
  }
  in_.salts.check(charged);
  guards_.check();
}

}  // namespace pagoda::kv

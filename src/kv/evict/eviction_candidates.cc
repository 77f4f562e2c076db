#include "kv/evict/eviction_candidates.h"

#include "base/assert.h"
#include "kv/block_identity.h"

namespace pagoda::kv {
namespace {

constexpr int kTickBits = 48;

using Verdict = EvictionQueue::Verdict;

}  // namespace

EvictionCandidates::EvictionCandidates(const CacheOptions& options, const Parts& parts)
    : in_(parts),
      policy_(*options.policy),
      tokens_weighed_(options.tokens_weighed()),
      created_(options.policy->reads_created ? options.blocks : 0, 0) {
  if (policy_.make_order != nullptr) {
    ordered_.emplace(policy_.make_order(options.blocks), options.blocks);
  } else {
    queue_.reserve(options.blocks);
  }
  const bool has_quotas = options.quota_blocks_private > 0 || options.quota_blocks_public > 0;
  if (has_quotas || in_.retention.enabled()) heaps_.emplace(options.blocks);
  if (has_quotas) {
    quotas_.emplace(QuotaQueues::Options{options.quota_blocks_private, options.quota_blocks_public},
                    *heaps_);
  }
}

Use EvictionCandidates::use_of(NodeId node, const RequestStats& request) const {
  return {.now = in_.clock.tick,
          .time_s = in_.clock.time_s(),
          .tokens_before = std::uint64_t{in_.tree.depth(node) - 1} * tokens_weighed_,
          .request = request};
}

void EvictionCandidates::page_sealed(NodeId node, std::uint32_t group) {
  if (!ordered_) return;
  const BlockId block = in_.tree.page(node, group).value();
  ordered_->order().sealed(block, mix_identity(in_.identities.of(node), group));
}

void EvictionCandidates::page_used(BlockId block, const RequestStats& request) {
  if (!ordered_) return;
  ++in_.clock.tick;
  const NodeId node = in_.pool.owner(block).value();
  const std::optional<BlockId> moved = ordered_->order().used(block, use_of(node, request));
  if (moved) push(*moved);
}

void EvictionCandidates::push(BlockId block) {
  const bool is_queued = !ordered_ && in_.pool.queued(block);
  if (is_queued && !heaps_) return;
  if (!in_.rules.is_evictable(block)) return;
  const NodeId node = in_.pool.owner(block).value();
  if (in_.retention.contains(node)) {
    if (heaps_->contains(block.value())) return;
    return heaps_->push(first_retained_, block.value(), retained_key(block));
  }
  if (quotas_) quotas_->push(account(node), block, in_.pool.last_use(block));
  if (ordered_) return ordered_->push(block, stats(block));
  if (is_queued) return;
  in_.pool.set_queued(block, true);
  queue_.push(block, score(block));
}

void EvictionCandidates::forget_node(NodeId node) {
  if (!heaps_) return;
  for (std::uint32_t group = 0; group < in_.tree.groups(); ++group) {
    const std::optional<BlockId> page = in_.tree.page(node, group);
    if (page) forget_block(node, *page);
  }
}

void EvictionCandidates::forget_block(NodeId node, BlockId block) {
  if (!heaps_->contains(block.value())) return;
  if (in_.retention.contains(node)) {
    heaps_->erase(first_retained_, block.value());
  } else {
    quotas_->erase(account(node), block);
  }
}

// A retained block waits in a heap of its own.
Verdict EvictionCandidates::judge(BlockId block) const {
  if (!in_.rules.is_evictable(block)) return Verdict::kForget;
  return in_.retention.contains(in_.pool.owner(block).value()) ? Verdict::kForget : Verdict::kTake;
}

std::optional<EvictionCandidates::Victim> EvictionCandidates::pop(Chance chance) {
  if (chance == Chance::kGive) {
    if (const std::optional<BlockId> block = pop_superseded()) {
      return Victim{.block = *block, .is_superseded = true};
    }
  }
  if (quotas_) {
    const std::optional<BlockId> block =
        quotas_->pop([this](BlockId candidate) { return in_.pool.last_use(candidate); },
                     [this](BlockId candidate) { return judge(candidate); });
    if (block) return Victim{.block = *block, .by_quota = true};
  }
  if (const std::optional<BlockId> block = pop_by_policy(chance)) return Victim{.block = *block};
  if (const std::optional<BlockId> block = pop_retained()) {
    return Victim{.block = *block, .is_retained = true};
  }
  return std::nullopt;
}

std::optional<BlockId> EvictionCandidates::pop_by_policy(Chance chance) {
  if (ordered_) {
    const auto stats_of = [this](BlockId block) { return stats(block); };
    const auto judge_one = [this](BlockId block) { return judge(block); };
    return chance == Chance::kGive ? ordered_->pop(stats_of, judge_one)
                                   : ordered_->take(stats_of, judge_one);
  }
  const auto judge_and_note = [this](BlockId block) {
    const Verdict verdict = judge(block);
    if (verdict == Verdict::kForget) in_.pool.set_queued(block, false);
    return verdict;
  };
  const std::optional<BlockId> block =
      queue_.pop([this](BlockId candidate) { return score(candidate); }, judge_and_note);
  if (block) in_.pool.set_queued(*block, false);
  return block;
}

std::optional<BlockId> EvictionCandidates::pop_retained() {
  while (first_retained_ != LinkedHeaps::kNone) {
    const BlockId block(first_retained_);
    const bool takes = in_.rules.is_evictable(block);
    const bool exact = takes && heaps_->key(block.value()) == retained_key(block);
    heaps_->erase(first_retained_, block.value());
    if (exact) return block;
    if (takes) heaps_->push(first_retained_, block.value(), retained_key(block));
  }
  return std::nullopt;
}

// A page of a full group goes with all pages of its node. The node stays on the list until it has
// no page, or none that may go. What its own account retains goes, too: the session has ended.
std::optional<BlockId> EvictionCandidates::pop_superseded() {
  while (const std::optional<NodeId> node = in_.sessions.first_superseded()) {
    std::optional<BlockId> victim;
    for (std::uint32_t group = 0; group < in_.tree.groups(); ++group) {
      const std::optional<BlockId> page = in_.tree.page(*node, group);
      if (!page || is_retained_by_others(*node) || !in_.rules.is_evictable(*page)) continue;
      if (!victim || !in_.rules.is_window(*node, group)) victim = page;
    }
    if (victim) return victim;
    in_.sessions.spare(*node);
  }
  return std::nullopt;
}

// The block with the largest key leaves first: of less priority, then used longer ago. Both only
// grow while the block is retained.
std::int64_t EvictionCandidates::retained_key(BlockId block) const {
  const auto priority = std::int64_t{in_.retention.priority(in_.pool.owner(block).value())};
  const auto tick = static_cast<std::int64_t>(in_.pool.last_use(block) & ((1ull << kTickBits) - 1));
  return -(priority << kTickBits | tick);
}

void EvictionCandidates::check() const {
  if (ordered_) ordered_->order().check();
  if (heaps_) heaps_->check(first_retained_);
  if (quotas_) {
    quotas_->check([this](AccountId account) { return in_.salts.blocks_charged(account); });
  }
}

void EvictionCandidates::check(BlockId block) const {
  if (!in_.rules.is_evictable(block)) return;
  const NodeId node = in_.pool.owner(block).value();
  if (in_.retention.contains(node)) {
    ASSERT(heaps_->contains(block.value()),
           "C6: what is retained and may be evicted waits to be the last");
    return;
  }
  const bool queued = ordered_ ? ordered_->holds(block, stats(block)) : in_.pool.queued(block);
  ASSERT(queued, "C3: what may be evicted is in the queue");
  const bool has_quota = quotas_ && quotas_->has_quota(account(node));
  ASSERT(!has_quota || heaps_->contains(block.value()),
         "C7: what may be evicted is known to its account's quota");
}

}  // namespace pagoda::kv

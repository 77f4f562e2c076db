// Making room: which idle blocks go, and what goes with them.
#include <utility>

#include "base/assert.h"
#include "kv/block_identity.h"
#include "kv/cache.h"

namespace pagoda::kv {
// The caller has made sure that so many blocks are available.
void Cache::make_room(std::uint64_t blocks, std::uint32_t account) {
  while (pool_.blocks_free() < blocks) {
    const bool evicted = evict_one({.account = account});
    ASSERT(evicted, "E6: what is available can be evicted");
  }
}

void Cache::clear() {
  EventRing* const events = std::exchange(events_, nullptr);  // told as one
  while (evict_one({.is_reset = true})) {
  }
  events_ = events;
  emit_cleared();
}

// From every page that may go upwards, as each lets its parent's go: one round over the pool does,
// unless window pages kept their nodes' others back.
void Cache::clear(OwnerId owner) {
  const auto may_go = [&](std::optional<BlockId> block) {
    return block && pool_.state(*block) == BlockState::kIdle &&
           is_owned(pool_.owner(*block).value(), owner) &&
           judge(*block) == EvictionQueue::Verdict::kTake;
  };
  for (bool went = true; went;) {
    went = false;
    for (std::uint32_t i = 0; i < pool_.blocks(); ++i) {
      std::optional<BlockId> block(i);
      while (may_go(block)) {
        const NodeId parent = tree_.parent(pool_.owner(*block).value());
        const bool parent_stays = !tree_.is_root(parent) && tree_.pages(parent) > 0;
        evict(*block, {.is_reset = true});
        went = true;
        block = parent_stays ? tree_.page(parent, 0) : std::nullopt;
      }
    }
  }
}

std::uint64_t Cache::retire(OwnerId owner) {
  const std::uint64_t before = blocks_evicted_;
  salts_.retire(owner);
  clear(owner);
  return blocks_evicted_ - before;
}

// Pages of the node that nobody holds go, and then those before it that stayed for its sake.
void Cache::drop_retired(NodeId node) {
  for (bool went = true; went && !tree_.is_root(node) && salts_.is_retired(tree_.region(node));) {
    went = false;
    const NodeId parent = tree_.parent(node);
    const bool parent_stays = !tree_.is_root(parent) && tree_.pages(parent) > 0;
    for (std::uint32_t group = 0; group < groups() && tree_.is_live(node); ++group) {
      const std::optional<BlockId> page = tree_.page(node, group);
      if (!page || judge(*page) == EvictionQueue::Verdict::kForget) continue;
      evict(*page, {.is_reset = true});
      went = true;
    }
    if (!parent_stays) return;
    node = parent;
  }
}

bool Cache::is_owned(NodeId node, OwnerId owner) const {
  const SaltId region = tree_.region(node);
  return region != kPublic && salts_.owner(region) == owner;
}

// The block to be evicted next, taken out of the queue: of an account that is over its quota, else
// as the policy says, and what is retained last. Without `may_spare` the policy gives no block
// another chance: for who looks and puts it back.
std::optional<BlockId> Cache::next_victim(bool may_spare) {
  victim_by_quota_ = false;
  if (quotas_) {
    const std::optional<BlockId> block =
        quotas_->pop([this](BlockId candidate) { return pool_.last_use(candidate); },
                     [this](BlockId candidate) { return judge_unretained(candidate); });
    victim_by_quota_ = block.has_value();
    if (block) return block;
  }
  const std::optional<BlockId> block = next_by_policy(may_spare);
  return block || !retentions_ ? block : next_retained();
}

std::optional<BlockId> Cache::next_by_policy(bool may_spare) {
  if (ordered_) {
    const auto stats_of = [this](BlockId block) { return stats(block); };
    const auto judge_one = [this](BlockId block) { return judge_unretained(block); };
    return may_spare ? ordered_->pop(stats_of, judge_one) : ordered_->take(stats_of, judge_one);
  }
  const auto judge_and_note = [this](BlockId block) {
    const EvictionQueue::Verdict verdict = judge_unretained(block);
    if (verdict == EvictionQueue::Verdict::kForget) pool_.set_queued(block, false);
    return verdict;
  };
  const std::optional<BlockId> block =
      queue_.pop([this](BlockId candidate) { return score(candidate); }, judge_and_note);
  if (block) pool_.set_queued(*block, false);
  return block;
}

bool Cache::evict_one(const EvictionTrigger& trigger) {
  const std::optional<BlockId> block = next_victim();
  if (block) evict(*block, trigger);
  return block.has_value();
}

EvictionCause Cache::cause_of(NodeId node, const EvictionTrigger& trigger) const {
  if (trigger.is_reset) return EvictionCause::kReset;
  if (victim_by_quota_) return EvictionCause::kQuota;
  return guards_[node.value()].was_retained ? EvictionCause::kRetained : EvictionCause::kRoom;
}

void Cache::evict(BlockId block, const EvictionTrigger& trigger) {
  const NodeId node = pool_.owner(block).value();
  const std::uint32_t group = group_of(node, block);
  const std::uint64_t evicted_before = blocks_evicted_;
  std::uint64_t& evicted =
      blocks_evicted_by_cause_[static_cast<std::size_t>(cause_of(node, trigger))];
  log_eviction(node, block, trigger);
  if (options_.groups[group].window == 0) {
    // Without a page of a full group nothing here or below can be matched.
    take_pages(node);
  } else {
    take_page(node, group);
    settle(node);
  }
  evicted += blocks_evicted_ - evicted_before;
}

// The node loses its page. When nobody holds the block it is free; one that a sequence still fills
// or a copy still reads is freed when it is released.
void Cache::take_page(NodeId node, std::uint32_t group) {
  const BlockId block = tree_.page(node, group).value();
  if (ordered_) ordered_->order().left(block);
  leave_heap(node, block);
  emit_event(CacheEventKind::kRemoved, node, group);
  tree_.set_page(node, group, std::nullopt);
  if (retentions_ && tree_.pages(node) == 0) retentions_->erase(node);
  salts_.discharge(tree_.region(node));
  note_charge(tree_.region(node));
  if (pool_.state(block) == BlockState::kIdle) {
    pool_.evict(block);
    ++blocks_evicted_;
  } else {
    pool_.set_owner(block, std::nullopt);
  }
  update_guard(node);
}

std::uint32_t Cache::group_of(NodeId node, BlockId block) const {
  std::uint32_t group = 0;
  while (tree_.page(node, group) != block) ++group;
  return group;
}

// A page of a full group may go with all pages of its node: when no child has any and nobody holds
// them. A page of a window group may go alone.
EvictionQueue::Verdict Cache::judge(BlockId block) const {
  using Verdict = EvictionQueue::Verdict;
  if (pool_.state(block) != BlockState::kIdle) return Verdict::kForget;
  const NodeId node = pool_.owner(block).value();
  if (options_.groups[group_of(node, block)].window != 0) return Verdict::kTake;
  if (tree_.children_resident(node) != 0) return Verdict::kForget;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const std::optional<BlockId> page = tree_.page(node, group);
    if (page && pool_.state(*page) != BlockState::kIdle) return Verdict::kForget;
  }
  return Verdict::kTake;
}

EvictionQueue::Verdict Cache::judge_unretained(BlockId block) const {
  if (judge(block) == EvictionQueue::Verdict::kForget) return EvictionQueue::Verdict::kForget;
  return is_retained(pool_.owner(block).value()) ? EvictionQueue::Verdict::kForget
                                                 : EvictionQueue::Verdict::kTake;
}

std::int64_t Cache::score(BlockId block) const { return options_.policy->score(stats(block)); }

BlockStats Cache::stats(BlockId block) const {
  return {.created = created_.empty() ? 0 : created_[block.value()],
          .last_use = pool_.last_use(block)};
}

void Cache::note_created(BlockId block) {
  ++now_;
  if (!created_.empty()) created_[block.value()] = now_;
}

// A node that is whole now: what it will be known by when it comes back.
void Cache::identify(NodeId node) {
  if (!keeps_identities()) return;
  identities_[node.value()] =
      identity_below(tree_.parent(node), tree_.region(node), tree_.tokens(node));
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (tree_.page(node, group)) note_sealed(node, group);
  }
}

void Cache::note_sealed(NodeId node, std::uint32_t group) {
  if (!ordered_) return;
  const BlockId block = tree_.page(node, group).value();
  ordered_->order().sealed(block, mix_identity(identities_[node.value()], group));
}

Use Cache::use_of(NodeId node, const RequestStats& request) const {
  return {.now = now_,
          .time_s = time_ns_ / 1'000'000'000,
          .tokens_before = std::uint64_t{tree_.depth(node) - 1} * block_tokens_weighed(),
          .request = request};
}

void Cache::note_use(BlockId block, const RequestStats& request) {
  if (!ordered_) return;
  ++now_;
  const NodeId node = pool_.owner(block).value();
  const std::optional<BlockId> moved = ordered_->order().used(block, use_of(node, request));
  if (moved) queue_if_evictable(*moved);
}

// The block that the sequence computed last.
void Cache::note_ended(const Sequence& sequence) {
  const std::uint64_t blocks = sequence.nodes_.size() + (sequence.tail_.empty() ? 0 : 1);
  if (!ordered_ || blocks == 0) return;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (blocks - 1 < sequence.first_held_[group]) continue;
    const BlockId block = sequence.tables_[group][blocks - 1];
    if (pool_.owner(block)) ordered_->order().ended(block);
  }
}

void Cache::queue_if_evictable(BlockId block) {
  const bool is_queued = !ordered_ && pool_.queued(block);
  if (is_queued && !heaps_) return;
  if (judge(block) == EvictionQueue::Verdict::kForget) return;
  const NodeId node = pool_.owner(block).value();
  if (is_retained(node)) {
    if (heaps_->contains(block.value())) return;
    return heaps_->push(first_retained_, block.value(), retained_key(block));
  }
  if (quotas_) quotas_->push(charged_account(node), block, pool_.last_use(block));
  if (ordered_) return ordered_->push(block, stats(block));
  if (is_queued) return;
  pool_.set_queued(block, true);
  queue_.push(block, score(block));
}

void Cache::queue_node(NodeId node) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const std::optional<BlockId> page = tree_.page(node, group);
    if (page) queue_if_evictable(*page);
  }
}

void Cache::take_pages(NodeId node) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (tree_.page(node, group)) take_page(node, group);
  }
  settle(node);
}

// After a node lost something: what nothing needs any more is erased, upwards, and what may be
// evicted now is queued.
void Cache::settle(NodeId node) {
  while (tree_.is_bare(node)) {
    const NodeId parent = tree_.parent(node);
    erase_node(node);
    node = parent;
  }
  if (!tree_.is_root(node) && tree_.pages(node) == 0) node = tree_.parent(node);
  if (!tree_.is_root(node)) queue_node(node);
}

// After a page of the node came, went, was held or was let go. What does not change for a parent is
// not looked at: holding from head to tail and releasing from tail to head take one step a page.
void Cache::update_guard(NodeId node) {
  for (;;) {
    bool held = false;
    std::uint32_t full = 0;
    std::uint32_t full_idle = 0;
    for (std::uint32_t group = 0; group < groups(); ++group) {
      const std::optional<BlockId> page = tree_.page(node, group);
      if (!page) continue;
      const bool idle = pool_.state(*page) == BlockState::kIdle;
      held = held || !idle;
      if (options_.groups[group].window != 0) continue;
      ++full;
      full_idle += idle ? 1 : 0;
    }
    Guard& guard = guards_[node.value()];
    const bool was_guarded = guard.is_guarded;
    guard.is_guarded = held || (full > 0 && guard.children > 0);
    blocks_guarded_ -= guard.blocks;
    guard.blocks = static_cast<std::uint16_t>(guard.is_guarded ? full_idle : 0);
    blocks_guarded_ += guard.blocks;
    if (guard.is_guarded == was_guarded) return;
    node = tree_.parent(node);  // roots have no pages and are never guarded
    guards_[node.value()].children += was_guarded ? -1 : 1;
  }
}

}  // namespace pagoda::kv

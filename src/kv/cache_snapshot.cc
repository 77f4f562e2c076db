// The cache as plain values, and the check of its invariants.
#include <algorithm>

#include "base/assert.h"
#include "kv/cache.h"

namespace pagoda::kv {

CacheSnapshot Cache::snapshot(std::size_t nodes_max) const {
  CacheSnapshot snapshot;
  snapshot.blocks.all = pool_.blocks();
  for (std::uint32_t i = 0; i < pool_.blocks(); ++i) {
    switch (pool_.state(BlockId(i))) {
      case BlockState::kFree:
        ++snapshot.blocks.free;
        break;
      case BlockState::kFilling:
        ++snapshot.blocks.filling;
        break;
      case BlockState::kSealed:
        ++snapshot.blocks.sealed;
        break;
      case BlockState::kIdle:
        ++snapshot.blocks.idle;
        break;
    }
  }
  snapshot.blocks_public = blocks_charged(kPublic);
  snapshot.blocks_evicted = blocks_evicted_;
  snapshot.blocks_deduplicated = blocks_deduplicated_;
  snapshot.nodes = tree_.nodes() - spaces_.size();

  std::vector<NodeId> todo;
  for (const auto& [space, root] : spaces_) todo.push_back(root);
  std::reverse(todo.begin(), todo.end());
  while (!todo.empty() && snapshot.tree.size() < nodes_max) {
    const NodeId node = todo.back();
    todo.pop_back();
    if (!tree_.is_root(node)) snapshot.tree.push_back(snapshot_of(node));
    const std::size_t first = todo.size();
    tree_.for_each_child(node, [&](NodeId child) { todo.push_back(child); });
    std::reverse(todo.begin() + static_cast<std::ptrdiff_t>(first), todo.end());
  }
  return snapshot;
}

NodeSnapshot Cache::snapshot_of(NodeId node) const {
  NodeSnapshot snapshot = {.depth = tree_.depth(node) - 1,
                           .tokens = {},
                           .whole = tree_.is_whole(node),
                           .hash = {},
                           .is_public = tree_.region(node) == kPublic,
                           .children = tree_.children(node),
                           .pages = tree_.pages(node),
                           .references = 0};
  if (snapshot.whole && options_.hash_blocks) snapshot.hash = hashes_[node.value()].hex();
  for (const TokenId token : tree_.tokens(node)) snapshot.tokens.push_back(token.value());
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const std::optional<BlockId> page = tree_.page(node, group);
    if (page) snapshot.references = std::max(snapshot.references, pool_.references(*page));
  }
  return snapshot;
}

void Cache::check() const {
  pool_.check();
  tree_.check();
  if (ordered_) ordered_->order().check();
  // Its size does not shrink with the cache's: it is looked at now and then.
  if (curve_ && now_ % 64 == 0) curve_->check();
  if (heaps_) heaps_->check(first_retained_);
  if (quotas_) quotas_->check([this](AccountId account) { return salts_.blocks_charged(account); });
  if (retentions_) retentions_->check();
  if (eviction_log_) eviction_log_->check();
  std::vector<std::uint64_t> charged(salts_.numbers(), 0);
  for (std::uint32_t i = 0; i < pool_.blocks(); ++i) {
    const BlockId block(i);
    if (pool_.state(block) == BlockState::kFree) continue;
    const std::optional<NodeId> node = pool_.owner(block);
    ASSERT(node || pool_.references(block) > 0, "C1: what nobody holds and no node has is free");
    if (!node) continue;
    bool known = false;
    for (std::uint32_t s = 0; s < groups(); ++s) known = known || tree_.page(*node, s) == block;
    ASSERT(known, "C2: a block's owner has it as a page");
    check_queued(block);
    ASSERT(
        !salts_.is_retired(tree_.region(*node)) || judge(block) == EvictionQueue::Verdict::kForget,
        "C8: what was retired goes when nobody holds it");
    ++charged[tree_.region(*node).value()];
  }
  std::vector<std::uint64_t> accounts(salts_.account_numbers(), 0);
  for (std::uint32_t salt = 0; salt < charged.size(); ++salt) {
    accounts[salts_.account(SaltId(salt)).value()] += charged[salt];
    ASSERT(charged[salt] == blocks_charged(SaltId(salt)),
           "C4: every region is charged for the blocks of its nodes");
  }
  for (std::uint32_t account = 0; account < accounts.size(); ++account) {
    ASSERT(accounts[account] == salts_.blocks_charged(AccountId(account)),
           "C4: every account is charged for the blocks of its regions");
  }
  check_guards();
}

void Cache::check_queued(BlockId block) const {
  const bool evictable = judge(block) == EvictionQueue::Verdict::kTake;
  const NodeId node = pool_.owner(block).value();
  if (is_retained(node)) {
    ASSERT(!evictable || heaps_->contains(block.value()),
           "C6: what is retained and may be evicted waits to be the last");
    return;
  }
  const bool queued = ordered_ ? ordered_->holds(block, stats(block)) : pool_.queued(block);
  ASSERT(!evictable || queued, "C3: what may be evicted is in the queue");
  const bool has_quota = quotas_ && quotas_->has_quota(charged_account(node));
  ASSERT(!evictable || !has_quota || heaps_->contains(block.value()),
         "C7: what may be evicted is known to its account's quota");
}

// From every held page upwards, by the definition (README: E6).
void Cache::check_guards() const {
  const auto has_full_page = [this](NodeId node) {
    for (std::uint32_t s = 0; s < groups(); ++s) {
      if (options_.groups[s].window == 0 && tree_.page(node, s)) return true;
    }
    return false;
  };
  std::vector<bool> guarded(guards_.size(), false);
  for (std::uint32_t i = 0; i < pool_.blocks(); ++i) {
    if (pool_.references(BlockId(i)) == 0) continue;
    std::optional<NodeId> node = pool_.owner(BlockId(i));
    while (node && !guarded[node->value()]) {
      guarded[node->value()] = true;
      node = tree_.parent(*node);
      if (!has_full_page(*node)) break;
    }
  }
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 0; i < pool_.blocks(); ++i) {
    if (pool_.state(BlockId(i)) != BlockState::kIdle) continue;
    const NodeId node = pool_.owner(BlockId(i)).value();
    const bool full = options_.groups[group_of(node, BlockId(i))].window == 0;
    blocks += full && guarded[node.value()] ? 1 : 0;
  }
  ASSERT(blocks == blocks_guarded_, "C5: the count of idle blocks that are guarded is true");
  for (std::uint32_t i = 0; i < guards_.size(); ++i) {
    ASSERT(guards_[i].is_guarded == guarded[i], "C5: guarded nodes are known");
  }
}

}  // namespace pagoda::kv

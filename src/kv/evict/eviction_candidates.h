// Which block leaves next: first those that their session has superseded, then those of an account
// that is over its quota, then as the policy says, and retained ones last (README: E4, E7, E8,
// E10).
//
// Told: what happens to blocks and requests, for policies with a memory of their own, and which
// blocks may be evicted now. Answers: the next victim. Its queues are corrected when a victim is
// asked for: a block that is held again, or is retained by now, is dropped from them then.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/block_identities.h"
#include "kv/blocks/block_pool.h"
#include "kv/cache_clock.h"
#include "kv/cache_options.h"
#include "kv/evict/eviction_queue.h"
#include "kv/evict/eviction_rules.h"
#include "kv/evict/linked_heaps.h"
#include "kv/evict/order_queues.h"
#include "kv/evict/policy.h"
#include "kv/evict/quota_queues.h"
#include "kv/evict/request_stats.h"
#include "kv/ids.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/retention_table.h"
#include "kv/salt_table.h"
#include "kv/session_table.h"

namespace pagoda::kv {

class EvictionCandidates {
 public:
  // All of them must outlive the candidates.
  struct Parts {
    BlockPool& pool;  // whose records have a bit for "in the queue"
    const PrefixTree& tree;
    const SaltTable& salts;
    const RetentionTable& retention;
    SessionTable& sessions;  // whose superseded nodes lose that rank where they cannot go
    const BlockIdentities& identities;
    EvictionRules rules;
    CacheClock& clock;  // a use takes a tick
  };

  struct Victim {
    BlockId block;
    bool by_quota = false;     // its account has more blocks than its quota
    bool is_retained = false;  // no other block was left
    bool is_superseded = false;
  };

  // May the policy give a victim another chance and choose another one? With kNone, which only
  // looks, superseded nodes are left out.
  enum class Chance : std::uint8_t { kGive, kNone };

  EvictionCandidates(const CacheOptions& options, const Parts& parts);
  EvictionCandidates(const EvictionCandidates&) = delete;  // quotas_ refers to heaps_
  EvictionCandidates& operator=(const EvictionCandidates&) = delete;

  // An account may be new. After this its blocks take no memory.
  void account_opened() {
    if (quotas_) quotas_->fit(in_.salts.account_numbers());
  }
  // The region has one block more or less than before.
  void region_charged(SaltId region) {
    if (!quotas_) return;
    const AccountId account = in_.salts.account(region);
    quotas_->note_charge(account, in_.salts.blocks_charged(account));
  }

  // The block is being filled from now on.
  void block_allocated(BlockId block) {
    ++in_.clock.tick;
    if (!created_.empty()) created_[block.value()] = in_.clock.tick;
  }
  // The block became a page of the node, for a request.
  void page_attached(NodeId node, BlockId block, const RequestStats& request) {
    if (ordered_) ordered_->order().entered(block, use_of(node, request));
  }
  // The tokens of the node's page are final.
  void page_sealed(NodeId node, std::uint32_t group);
  // A request found the page; the pages of a request are told from tail to head.
  void page_used(BlockId block, const RequestStats& request);
  // A request ends, and this is its last page.
  void request_ended(BlockId block) {
    if (ordered_) ordered_->order().ended(block);
  }
  // The block is about to leave the node.
  void page_left(NodeId node, BlockId block) {
    if (ordered_) ordered_->order().left(block);
    if (heaps_) forget_block(node, block);
  }

  // Enters the block, or every page of the node, that may be evicted now and is not entered yet.
  void push(BlockId block);
  void push_node(NodeId node) {
    const PrefixTree& tree = in_.tree;
    for (std::uint32_t group = 0, groups = tree.groups(); group < groups; ++group) {
      const std::optional<BlockId> page = tree.page(node, group);
      if (page) push(*page);
    }
  }
  // The node is about to be retained, or about to be retained no more: takes its pages out of the
  // heap that they are in. push_node() enters them into the other one.
  void forget_node(NodeId node);

  // Does another account than that of its region retain the node?
  bool is_retained_by_others(NodeId node) const {
    return in_.retention.contains(node) && in_.retention.account(node) != account(node);
  }

  // The block to be evicted next, taken out; nothing when none may be evicted.
  std::optional<Victim> pop(Chance chance = Chance::kGive);
  // Would the policy give a victim of Chance::kNone another chance?
  bool would_spare(const Victim& victim) const {
    const bool by_order = ordered_ && !victim.by_quota && !victim.is_retained;
    return by_order && ordered_->order().spares(victim.block);
  }

  // Stops the program when queues, heaps or the policy's memory contradict themselves. Linear.
  void check() const;
  // ... or when the block, a page of a node, may be evicted and waits nowhere (README: C3, C6, C7).
  void check(BlockId block) const;

 private:
  AccountId account(NodeId node) const { return in_.salts.account(in_.tree.region(node)); }
  BlockStats stats(BlockId block) const {
    return {.created = created_.empty() ? 0 : created_[block.value()],
            .last_use = in_.pool.last_use(block)};
  }
  std::int64_t score(BlockId block) const { return policy_.score(stats(block)); }
  Use use_of(NodeId node, const RequestStats& request) const;
  EvictionQueue::Verdict judge(BlockId block) const;
  std::optional<BlockId> pop_by_policy(Chance chance);
  std::optional<BlockId> pop_retained();
  std::optional<BlockId> pop_superseded();
  std::int64_t retained_key(BlockId block) const;
  void forget_block(NodeId node, BlockId block);

  Parts in_;
  const EvictionPolicy& policy_;
  std::uint32_t tokens_weighed_;        // of a block, for policies that weigh positions
  EvictionQueue queue_;                 // when the policy is a score
  std::optional<OrderQueues> ordered_;  // when the policy is an order
  std::vector<Tick> created_;           // [block], or empty: the policy does not read it
  std::optional<LinkedHeaps> heaps_;    // of blocks: by account for quotas_, or retained
  std::optional<QuotaQueues> quotas_;
  LinkedHeaps::Item first_retained_ = LinkedHeaps::kNone;  // top of the heap of retained blocks
};

}  // namespace pagoda::kv

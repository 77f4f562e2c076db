// What requests asked to be kept, and accounts that have more than their quota.
#include <algorithm>
#include <string>

#include "base/assert.h"
#include "kv/cache.h"

namespace pagoda::kv {
namespace {

constexpr int kNodesLetGoAtOnce = 64;
constexpr int kTickBits = 48;

}  // namespace

Result<Retained> Cache::retain(const Sequence& sequence, const RetainTerms& terms) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  if (!retentions_ || !options_.share) {
    return Error{ErrorCode::kUnsupported, retentions_ ? "nothing stays: prefix caching is off"
                                                      : "nothing is retained: the budget is 0"};
  }
  const std::uint64_t blocks =
      std::min<std::uint64_t>(terms.tokens / options_.block_tokens, sequence.nodes_.size());
  if (blocks == 0) {
    return Error{ErrorCode::kOutOfRange, std::to_string(terms.tokens) +
                                             " tokens are less than a block of " +
                                             std::to_string(options_.block_tokens)};
  }
  const auto nodes = std::span(sequence.nodes_).first(blocks);
  RetainTerms kept = terms;
  kept.priority = std::min(kept.priority, kRetainPriorityMax);
  ASSIGN_OR_RETURN(const std::uint64_t taken,
                   retentions_->count_taken(sequence.salt_, kept, nodes));
  if (taken > 0) {
    for (const NodeId node : nodes) {
      if (is_retained(node)) continue;
      for (std::uint32_t group = 0; group < groups(); ++group) {
        const std::optional<BlockId> page = tree_.page(node, group);
        if (page) leave_heap(node, *page);
      }
    }
    retentions_->grant(sequence.salt_, kept, nodes, [this](NodeId node) {
      guards_[node.value()].was_retained = false;
      queue_node(node);
    });
  }
  return Retained{.tokens = blocks * options_.block_tokens,
                  .blocks = blocks * groups(),
                  .blocks_charged = taken * groups()};
}

void Cache::advance_time(std::int64_t now_ns) {
  time_ns_ = std::max(time_ns_, now_ns);
  if (!retentions_) return;
  for (int i = 0; i < kNodesLetGoAtOnce; ++i) {
    const std::optional<NodeId> node = retentions_->due(time_ns_);
    if (!node) return;
    guards_[node->value()].was_retained = true;
    release_retained(*node);
  }
}

std::vector<GrantStats> Cache::retained() const {
  return retentions_ ? retentions_->stats() : std::vector<GrantStats>();
}

void Cache::release_retained(NodeId node) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const std::optional<BlockId> page = tree_.page(node, group);
    if (page) leave_heap(node, *page);
  }
  retentions_->erase(node);
  queue_node(node);
}

// Larger leaves first: less priority, then used longer ago. Both only grow while it is retained.
std::int64_t Cache::retained_key(BlockId block) const {
  const auto priority = std::int64_t{retentions_->priority(pool_.owner(block).value())};
  const auto tick = static_cast<std::int64_t>(pool_.last_use(block) & ((1ull << kTickBits) - 1));
  return -(priority << kTickBits | tick);
}

std::optional<BlockId> Cache::next_retained() {
  while (first_retained_ != LinkedHeaps::kNone) {
    const BlockId block(first_retained_);
    const bool takes = judge(block) == EvictionQueue::Verdict::kTake;
    const bool exact = takes && heaps_->key(block.value()) == retained_key(block);
    heaps_->erase(first_retained_, block.value());
    if (exact) return block;
    if (takes) heaps_->push(first_retained_, block.value(), retained_key(block));
  }
  return std::nullopt;
}

// The block is in no heap of its account and not among the retained.
void Cache::leave_heap(NodeId node, BlockId block) {
  if (!heaps_ || !heaps_->contains(block.value())) return;
  if (is_retained(node)) {
    heaps_->erase(first_retained_, block.value());
  } else {
    quotas_->erase(charged_account(node), block);
  }
}

void Cache::note_charge(SaltId region) {
  const AccountId account = salts_.account(region);
  if (quotas_) quotas_->note_charge(account, salts_.blocks_charged(account));
}

}  // namespace pagoda::kv

// The candidates of an EvictionOrder: a lazily corrected queue for each of its queues.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "kv/evict/eviction_order.h"
#include "kv/evict/eviction_queue.h"

namespace pagoda::kv {

class OrderQueues {
 public:
  OrderQueues(std::unique_ptr<EvictionOrder> order, std::uint32_t blocks)
      : order_(std::move(order)),
        queues_(order_->queues()),
        heads_(order_->queues()),
        entries_(blocks, 0) {
    ASSERT(queues_.size() <= 8, "a block's entries are the bits of a byte");
    for (EvictionQueue& queue : queues_) queue.reserve(blocks);
  }

  EvictionOrder& order() { return *order_; }
  const EvictionOrder& order() const { return *order_; }

  // The block may be evicted now. Where an older entry of it waits, that one serves.
  void push(BlockId block, const BlockStats& stats) {
    const EvictionOrder::QueuePosition at = order_->position(block, stats);
    if (has_entry(block, at.queue)) return;
    entries_[block.value()] |= bit(at.queue);
    queues_[at.queue].push(block, at.score);
  }

  bool holds(BlockId block, const BlockStats& stats) const {
    return has_entry(block, order_->position(block, stats).queue);
  }

  // The block to be evicted next, taken out; nothing when there is none.
  // stats(BlockId) gives BlockStats; judge(BlockId) a Verdict.
  template <class Stats, class Judge>
  std::optional<BlockId> pop(Stats&& stats, Judge&& judge) {
    for (;;) {
      const std::optional<BlockId> victim = take(stats, judge);
      if (!victim || !order_->spares(*victim)) return victim;
      order_->spare(*victim);
      push(*victim, stats(*victim));
    }
  }

  // The block whose turn it is, taken out, whether the order would spare it or not.
  template <class Stats, class Judge>
  std::optional<BlockId> take(Stats&& stats, Judge&& judge) {
    const std::optional<std::uint32_t> at = next_queue(stats, judge);
    if (!at) return std::nullopt;
    const BlockId block = queues_[*at].take_top();
    entries_[block.value()] &= static_cast<std::uint8_t>(~bit(*at));
    return block;
  }

 private:
  using Verdict = EvictionQueue::Verdict;

  static std::uint8_t bit(std::uint32_t queue) { return static_cast<std::uint8_t>(1u << queue); }
  bool has_entry(BlockId block, std::uint32_t queue) const {
    return (entries_[block.value()] & bit(queue)) != 0;
  }

  // The queue whose top entry, which is exact then, is the next victim's.
  template <class Stats, class Judge>
  std::optional<std::uint32_t> next_queue(Stats&& stats, Judge&& judge) {
    if (order_->compares_heads()) {
      bool any = false;
      for (std::uint32_t at = 0; at < queues_.size(); ++at) {
        heads_[at] = head_of(at, stats, judge);
        any = any || heads_[at].has_value();
      }
      if (!any) return std::nullopt;
      return order_->first_of(heads_);
    }
    const std::uint32_t first = order_->first_queue();
    for (std::uint32_t i = 0; i < queues_.size(); ++i) {
      const auto at = static_cast<std::uint32_t>((first + i) % queues_.size());
      if (head_of(at, stats, judge)) return at;
    }
    return std::nullopt;
  }

  // An entry of a block that stands in another queue by now is dropped: it has one there (C3), or
  // is a victim already.
  template <class Stats, class Judge>
  std::optional<EvictionOrder::Head> head_of(std::uint32_t at, Stats&& stats, Judge&& judge) {
    const auto judge_here = [&](BlockId block) {
      const bool stands_here =
          judge(block) == Verdict::kTake && order_->position(block, stats(block)).queue == at;
      if (stands_here) return Verdict::kTake;
      entries_[block.value()] &= static_cast<std::uint8_t>(~bit(at));
      return Verdict::kForget;
    };
    const auto score = [&](BlockId block) { return order_->position(block, stats(block)).score; };
    const std::optional<BlockId> block = queues_[at].top(score, judge_here);
    if (!block) return std::nullopt;
    return EvictionOrder::Head{*block, score(*block)};
  }

  std::unique_ptr<EvictionOrder> order_;
  std::vector<EvictionQueue> queues_;
  std::vector<std::optional<EvictionOrder::Head>> heads_;  // [queue], while one is chosen
  std::vector<std::uint8_t> entries_;  // [block]: a bit for each queue that has an entry of it
};

}  // namespace pagoda::kv

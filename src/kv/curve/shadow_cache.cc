#include "kv/curve/shadow_cache.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace pagoda::kv {

ShadowCache::ShadowCache(const EvictionPolicy& policy, std::uint32_t blocks)
    : policy_(policy),
      nodes_(blocks),
      heads_(blocks, kNone),
      created_(policy.reads_created ? blocks : 0, 0),
      unused_count_(blocks) {
  ASSERT(blocks > 0 && blocks <= std::numeric_limits<std::uint16_t>::max(),
         "a shadow is small: children are counted in 16 bits");
  if (policy.make_order != nullptr) {
    ordered_.emplace(policy.make_order(blocks), blocks);
  } else {
    queue_.reserve(blocks);
  }
  path_.reserve(blocks);
  for (std::uint32_t at = blocks; at-- > 0;) {
    nodes_[at].chain = unused_;
    unused_ = at;
  }
}

std::uint64_t ShadowCache::open(std::span<const SampledBlock> blocks, const RequestStats& request,
                                std::int64_t time_s, bool goes_on) {
  blocks = blocks.first(std::min(blocks.size(), nodes_.size()));
  follow(blocks);
  const std::uint64_t found = path_.size();
  const RequestStats seen = {.blocks_found = found,
                             .blocks_fresh = blocks.size() - found,
                             .goes_on = found > 0 && nodes_[path_.back()].children <= 2,
                             .priority = request.priority};
  for (std::uint64_t i = found; i-- > 0;) {
    nodes_[path_[i]].last_use = ++now_;
    if (!ordered_) continue;
    const auto moved = ordered_->order().used(BlockId(path_[i]), use_of(blocks[i], seen, time_s));
    if (moved) queue_if_evictable(moved->value());
  }
  fill(blocks, seen, time_s);
  // In the cache what comes now below the last of them leaves before it does.
  const bool is_extended = goes_on && !path_.empty() && path_.size() == blocks.size();
  if (is_extended && !created_.empty()) created_[path_.back()] = now_;
  end_visit();
  return found;
}

void ShadowCache::close(std::span<const SampledBlock> blocks, const RequestStats& request,
                        std::int64_t time_s, bool ends_here) {
  blocks = blocks.first(std::min(blocks.size(), nodes_.size()));
  follow(blocks);
  fill(blocks, request, time_s);
  if (ordered_ && ends_here && !path_.empty() && path_.size() == blocks.size()) {
    ordered_->order().ended(BlockId(path_.back()));
  }
  for (std::size_t i = path_.size(); i-- > 0;) nodes_[path_[i]].last_use = ++now_;
  end_visit();
}

// The path becomes the first of the blocks that are there.
void ShadowCache::follow(std::span<const SampledBlock> blocks) {
  path_.clear();
  for (const SampledBlock& block : blocks) {
    const std::uint32_t at = find(block.identity);
    if (at == kNone) return;
    nodes_[at].visit = visit_;
    path_.push_back(at);
  }
}

// The blocks after the path come, as many as room can be made for.
void ShadowCache::fill(std::span<const SampledBlock> blocks, const RequestStats& request,
                       std::int64_t time_s) {
  const std::size_t missing = blocks.size() - path_.size();
  while (unused_count_ < missing && evict_one()) {
  }
  const std::size_t first = path_.size();
  const std::size_t last = first + std::min<std::size_t>(missing, unused_count_);
  for (std::size_t i = first; i < last; ++i) {
    path_.push_back(insert(blocks[i], path_.empty() ? kNone : path_.back()));
  }
  if (!ordered_) return;
  for (std::size_t i = first; i < last; ++i) {
    ordered_->order().entered(BlockId(path_[i]), use_of(blocks[i], request, time_s));
    ordered_->order().sealed(BlockId(path_[i]), blocks[i].identity);
  }
}

std::uint32_t ShadowCache::insert(const SampledBlock& block, std::uint32_t parent) {
  const std::uint32_t at = unused_;
  unused_ = nodes_[at].chain;
  --unused_count_;
  std::uint32_t& head = heads_[block.identity % heads_.size()];
  nodes_[at] = {.identity = block.identity,
                .last_use = ++now_,
                .chain = head,
                .parent = parent,
                .visit = visit_,
                .is_here = true};
  head = at;
  if (parent != kNone) ++nodes_[parent].children;
  if (!created_.empty()) created_[at] = now_;
  return at;
}

bool ShadowCache::evict_one() {
  const auto judge_here = [this](BlockId block) { return judge(block); };
  std::optional<BlockId> victim;
  if (ordered_) {
    victim = ordered_->pop([this](BlockId block) { return stats(block); }, judge_here);
  } else {
    const auto judge_and_note = [this](BlockId block) {
      const EvictionQueue::Verdict verdict = judge(block);
      if (verdict == EvictionQueue::Verdict::kForget) nodes_[block.value()].is_queued = false;
      return verdict;
    };
    victim =
        queue_.pop([this](BlockId block) { return policy_.score(stats(block)); }, judge_and_note);
    if (victim) nodes_[victim->value()].is_queued = false;
  }
  if (victim) erase(victim->value());
  return victim.has_value();
}

void ShadowCache::erase(std::uint32_t at) {
  if (ordered_) ordered_->order().left(BlockId(at));
  Node& node = nodes_[at];
  std::uint32_t* link = &heads_[node.identity % heads_.size()];
  while (*link != at) link = &nodes_[*link].chain;
  *link = node.chain;
  const std::uint32_t parent = node.parent;
  node.is_here = false;
  node.chain = unused_;
  unused_ = at;
  ++unused_count_;
  if (parent == kNone) return;
  --nodes_[parent].children;
  queue_if_evictable(parent);
}

// Queues the blocks of the visited path again, tail first: none of them was evictable during the
// visit.
void ShadowCache::end_visit() {
  ++visit_;
  for (std::size_t i = path_.size(); i-- > 0;) queue_if_evictable(path_[i]);
}

std::uint32_t ShadowCache::find(std::uint64_t identity) const {
  std::uint32_t at = heads_[identity % heads_.size()];
  while (at != kNone && nodes_[at].identity != identity) at = nodes_[at].chain;
  return at;
}

bool ShadowCache::is_evictable(std::uint32_t at) const {
  const Node& node = nodes_[at];
  return node.is_here && node.children == 0 && node.visit != visit_;
}

EvictionQueue::Verdict ShadowCache::judge(BlockId block) const {
  return is_evictable(block.value()) ? EvictionQueue::Verdict::kTake
                                     : EvictionQueue::Verdict::kForget;
}

void ShadowCache::queue_if_evictable(std::uint32_t at) {
  if (!is_evictable(at)) return;
  const BlockId block(at);
  if (ordered_) return ordered_->push(block, stats(block));
  if (nodes_[at].is_queued) return;
  nodes_[at].is_queued = true;
  queue_.push(block, policy_.score(stats(block)));
}

BlockStats ShadowCache::stats(BlockId block) const {
  return {.created = created_.empty() ? 0 : created_[block.value()],
          .last_use = nodes_[block.value()].last_use};
}

Use ShadowCache::use_of(const SampledBlock& block, const RequestStats& request,
                        std::int64_t time_s) const {
  return {.now = now_, .time_s = time_s, .tokens_before = block.tokens_before, .request = request};
}

void ShadowCache::check() const {
  if (ordered_) ordered_->order().check();
  std::vector<std::uint16_t> children(nodes_.size(), 0);
  std::uint32_t here = 0;
  for (std::uint32_t at = 0; at < nodes_.size(); ++at) {
    const Node& node = nodes_[at];
    if (!node.is_here) continue;
    ++here;
    ASSERT(find(node.identity) == at, "V3: a block is found by its identity, once");
    if (node.parent == kNone) continue;
    ASSERT(nodes_[node.parent].is_here, "V3: the tail of a chain leaves before its head");
    ++children[node.parent];
  }
  std::uint32_t unused = 0;
  for (std::uint32_t at = unused_; at != kNone; at = nodes_[at].chain) ++unused;
  ASSERT(unused == unused_count_ && here + unused == nodes_.size(), "V3: a node is used or not");
  for (std::uint32_t at = 0; at < nodes_.size(); ++at) {
    if (!nodes_[at].is_here) continue;
    ASSERT(nodes_[at].children == children[at], "V3: children are counted");
    const BlockId block(at);
    ASSERT(!is_evictable(at) ||
               (ordered_ ? ordered_->holds(block, stats(block)) : nodes_[at].is_queued),
           "V3: what may leave is in the queue");
  }
}

}  // namespace pagoda::kv

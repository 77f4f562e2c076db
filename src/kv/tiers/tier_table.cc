#include "kv/tiers/tier_table.h"

#include "base/assert.h"

namespace pagoda::kv {

TierTable::TierTable(std::uint32_t slots, std::uint32_t slices, std::size_t nodes)
    : slices_(slices), pool_(slots), places_(slots) {
  queue_.reserve(slots);
  slot_of_.reserve(nodes * slices);
}

std::optional<SlotId> TierTable::find(NodeId node, std::uint32_t slice) const {
  const std::size_t at = index(node, slice);
  if (at >= slot_of_.size() || slot_of_[at] == kNone) return std::nullopt;
  return SlotId(slot_of_[at]);
}

std::optional<NodeId> TierTable::node(SlotId slot) const {
  const std::optional<Place>& place = places_[slot.value()];
  return place ? std::optional(place->node) : std::nullopt;
}

std::uint32_t TierTable::copies(NodeId node) const {
  std::uint32_t copies = 0;
  for (std::uint32_t slice = 0; slice < slices_; ++slice) copies += find(node, slice) ? 1 : 0;
  return copies;
}

std::optional<NodeId> TierTable::displace() {
  const auto score = [this](BlockId slot) {
    return -static_cast<std::int64_t>(pool_.last_use(slot));
  };
  const auto judge = [this](BlockId slot) {
    if (pool_.state(slot) == BlockState::kIdle) return EvictionQueue::Verdict::kTake;
    pool_.set_queued(slot, false);
    return EvictionQueue::Verdict::kForget;
  };
  const std::optional<BlockId> oldest = queue_.pop(score, judge);
  if (!oldest) return std::nullopt;
  pool_.set_queued(*oldest, false);
  const NodeId node = places_[oldest->value()]->node;
  detach(SlotId(oldest->value()));
  pool_.evict(*oldest);
  return node;
}

std::optional<TierTable::Writable> TierTable::begin_write() {
  std::optional<NodeId> displaced;
  if (pool_.blocks_free() == 0) {
    displaced = displace();
    if (!displaced) return std::nullopt;
  }
  return Writable{SlotId(pool_.fill()->value()), displaced};
}

void TierTable::end_write(SlotId slot, NodeId node, std::uint32_t slice, Tick now) {
  const std::size_t at = index(node, slice);
  if (at >= slot_of_.size()) slot_of_.resize(index(NodeId(node.value() + 1), 0), kNone);
  ASSERT(slot_of_[at] == kNone, "a node's page has one copy in a tier");
  slot_of_[at] = slot.value();
  places_[slot.value()] = Place{node, slice};
  pool_.seal(BlockId(slot.value()));
  pool_.rest(BlockId(slot.value()), now);
  queue(slot);
}

void TierTable::abandon_write(SlotId slot) { pool_.drop(BlockId(slot.value())); }

void TierTable::begin_read(SlotId slot) {
  const BlockId block(slot.value());
  if (pool_.state(block) == BlockState::kIdle) {
    pool_.wake(block);
  } else {
    pool_.share(block);
  }
}

void TierTable::end_read(SlotId slot, Tick now) {
  const BlockId block(slot.value());
  if (pool_.references(block) > 1) return pool_.unshare(block);
  pool_.rest(block, now);
  queue(slot);
}

void TierTable::forget(SlotId slot) {
  if (pool_.state(BlockId(slot.value())) != BlockState::kIdle) return;
  detach(slot);
  pool_.evict(BlockId(slot.value()));
}

void TierTable::detach(SlotId slot) {
  const Place place = places_[slot.value()].value();
  slot_of_[index(place.node, place.slice)] = kNone;
  places_[slot.value()].reset();
}

void TierTable::queue(SlotId slot) {
  const BlockId block(slot.value());
  if (pool_.queued(block)) return;
  pool_.set_queued(block, true);
  queue_.push(block, -static_cast<std::int64_t>(pool_.last_use(block)));
}

void TierTable::check() const {
  pool_.check();
  for (std::uint32_t i = 0; i < pool_.blocks(); ++i) {
    const BlockId slot(i);
    const bool kept =
        pool_.state(slot) == BlockState::kIdle || pool_.state(slot) == BlockState::kSealed;
    ASSERT(kept == places_[i].has_value(), "S1: kept slots and only they belong to a node");
    if (!kept) continue;
    ASSERT(find(places_[i]->node, places_[i]->slice) == SlotId(i), "S2: a node knows its slots");
    ASSERT(pool_.state(slot) != BlockState::kIdle || pool_.queued(slot),
           "S3: what may be displaced is in the queue");
  }
}

}  // namespace pagoda::kv

#include "store/disk/slot_index.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"

namespace pagoda::store {

SlotIndex::SlotIndex(std::size_t slots_max)
    : records_(slots_max),
      table_(records_, slots_max),
      states_(slots_max, State::kFree),
      flags_(slots_max, 0),
      pins_(slots_max, 0),
      newer_(slots_max, kNobody),
      older_(slots_max, kNobody) {}

void SlotIndex::load(SlotNumber slot, const SlotRecord& record, bool is_verified) {
  if (const auto duplicate = table_.find(record.key)) {
    if (records_[*duplicate].used_us >= record.used_us) {
      mark_changed(slot);
      return;
    }
    table_.erase(*duplicate);
    records_[*duplicate] = {};
    states_[*duplicate] = State::kFree;
    clear(*duplicate, kVerified);
    mark_changed(*duplicate);
    --used_;
  }
  records_[slot] = record;
  states_[slot] = State::kUsed;
  if (is_verified) set_verified(slot);
  table_.insert(slot);
  ++used_;
}

void SlotIndex::finish_loading() {
  std::vector<SlotNumber> by_use;
  by_use.reserve(used_);
  // Low numbers are taken first.
  for (std::size_t i = states_.size(); i-- > 0;) {
    const auto slot = static_cast<SlotNumber>(i);
    (is_used(slot) ? by_use : free_).push_back(slot);
  }
  std::sort(by_use.begin(), by_use.end(), [this](SlotNumber a, SlotNumber b) {
    return records_[a].used_us < records_[b].used_us;
  });
  for (const SlotNumber slot : by_use) link_newest(slot);
}

void SlotIndex::link_newest(SlotNumber slot) {
  older_[slot] = newest_;
  newer_[slot] = kNobody;
  (newest_ == kNobody ? oldest_ : newer_[newest_]) = slot;
  newest_ = slot;
}

void SlotIndex::unlink(SlotNumber slot) {
  const SlotNumber newer = newer_[slot];
  const SlotNumber older = older_[slot];
  (newer == kNobody ? newest_ : older_[newer]) = older;
  (older == kNobody ? oldest_ : newer_[older]) = newer;
}

void SlotIndex::touch(SlotNumber slot, std::uint64_t now_us, bool is_read) {
  ASSERT(is_used(slot), "only a used slot is touched");
  records_[slot].used_us = now_us;
  flags_[slot] |= kTouched;
  if (is_read) flags_[slot] |= kRead;
  unlink(slot);
  link_newest(slot);
}

bool SlotIndex::are_all_verified() const {
  for (SlotNumber slot = oldest_; slot != kNobody; slot = newer_[slot]) {
    if (!has(slot, kVerified)) return false;
  }
  return true;
}

void SlotIndex::unpin(SlotNumber slot) {
  ASSERT(pins_[slot] > 0, "who unpins has pinned");
  --pins_[slot];
}

// Takes the slot out of the table and the order; the next commit overwrites the file's record.
void SlotIndex::forget(SlotNumber slot, State next) {
  ASSERT(is_used(slot), "only a used slot is forgotten");
  table_.erase(slot);
  unlink(slot);
  records_[slot] = {};
  states_[slot] = next;
  clear(slot, kVerified);
  clear(slot, kRead);
  clear(slot, kTouched);
  mark_changed(slot);
  --used_;
}

std::optional<SlotNumber> SlotIndex::evict() {
  SlotNumber slot = oldest_;
  while (slot != kNobody && pins_[slot] > 0) slot = newer_[slot];
  if (slot == kNobody) return std::nullopt;
  ++evicted_;
  if (!has(slot, kRead)) ++evicted_unread_;
  forget(slot, State::kTaken);
  return slot;
}

std::optional<SlotNumber> SlotIndex::take(bool may_grow) {
  if (!may_grow) {
    if (const auto slot = evict()) return slot;
  }
  if (free_.empty()) return evict();
  const SlotNumber slot = free_.back();
  free_.pop_back();
  states_[slot] = State::kTaken;
  clear(slot, kBlank);
  return slot;
}

void SlotIndex::place(SlotNumber slot, const SlotRecord& record) {
  ASSERT(states_[slot] == State::kTaken, "a slot is taken before it is placed");
  if (const auto duplicate = table_.find(record.key)) drop(*duplicate);
  records_[slot] = record;
  states_[slot] = State::kUsed;
  set_verified(slot);
  table_.insert(slot);
  link_newest(slot);
  mark_changed(slot);
  ++used_;
}

void SlotIndex::give_back(SlotNumber slot) { put_back(slot, false); }

void SlotIndex::drop(SlotNumber slot) {
  forget(slot, State::kFree);
  free_.push_back(slot);
}

SlotIndex::TakenOut SlotIndex::take_out(const std::optional<kv::OwnerTag>& owner) {
  TakenOut out;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto slot = static_cast<SlotNumber>(i);
    if (!is_used(slot) || (owner && records_[slot].owner != *owner)) continue;
    forget(slot, State::kTaken);
    out.used.push_back(slot);
  }
  const auto blank = [this](SlotNumber slot) { return has(slot, kBlank); };
  const auto leftovers = std::partition(free_.begin(), free_.end(), blank);
  out.leftovers.assign(leftovers, free_.end());
  free_.erase(leftovers, free_.end());
  for (const SlotNumber slot : out.leftovers) states_[slot] = State::kTaken;
  return out;
}

void SlotIndex::put_back(SlotNumber slot, bool is_blank) {
  ASSERT(states_[slot] == State::kTaken, "only what was taken is put back");
  states_[slot] = State::kFree;
  if (is_blank) flags_[slot] |= kBlank;
  free_.push_back(slot);
}

std::vector<SlotChange> SlotIndex::take_changes() {
  std::sort(changed_.begin(), changed_.end());
  std::vector<SlotChange> changes;
  changes.reserve(changed_.size());
  for (const SlotNumber slot : changed_) {
    clear(slot, kChanged);
    clear(slot, kTouched);
    changes.push_back({slot, records_[slot]});
  }
  changed_.clear();
  return changes;
}

void SlotIndex::mark_changed(SlotNumber slot) {
  if (has(slot, kChanged)) return;
  flags_[slot] |= kChanged;
  changed_.push_back(slot);
}

void SlotIndex::distrust(const SlotChange& change) {
  const bool is_same = is_used(change.slot) && records_[change.slot].sum == change.record.sum;
  if (is_same) drop(change.slot);
  clear(change.slot, kBlank);
  mark_changed(change.slot);
}

void SlotIndex::mark_touched_changed() {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto slot = static_cast<SlotNumber>(i);
    if (has(slot, kTouched)) mark_changed(slot);
  }
}

void SlotIndex::check() const {
  std::size_t used = 0;
  std::size_t free = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto slot = static_cast<SlotNumber>(i);
    ASSERT(is_used(slot) != records_[slot].is_free(), "a used slot has a record, others have none");
    if (is_used(slot)) {
      ASSERT(table_.find(records_[slot].key) == slot, "the table finds every used slot");
      ++used;
    }
    free += states_[slot] == State::kFree ? 1 : 0;
  }
  ASSERT(used == used_, "used slots are counted");
  ASSERT(free == free_.size(), "free slots are listed");
  std::size_t linked = 0;
  for (SlotNumber slot = oldest_; slot != kNobody; slot = newer_[slot]) {
    ASSERT(is_used(slot), "the order holds used slots");
    ASSERT(newer_[slot] == kNobody ? newest_ == slot : older_[newer_[slot]] == slot,
           "both directions of the order agree");
    ++linked;
  }
  ASSERT(linked == used_, "every used slot has its place in the order");
}

}  // namespace pagoda::store

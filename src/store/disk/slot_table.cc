#include "store/disk/slot_table.h"

#include <bit>
#include <cstring>

#include "base/assert.h"

namespace pagoda::store {

SlotTable::SlotTable(const LargeArray<SlotRecord>& records, std::size_t slots_max)
    : records_(records),
      buckets_(std::bit_ceil(2 * slots_max + 2), 0),
      mask_(buckets_.size() - 1) {}

std::size_t SlotTable::bucket_of(const KeyDigest& key) const {
  std::uint64_t bits = 0;  // the digest is random already
  std::memcpy(&bits, key.bytes.data(), sizeof(bits));
  return bits & mask_;
}

std::optional<SlotNumber> SlotTable::find(const KeyDigest& key) const {
  for (std::size_t at = bucket_of(key); buckets_[at] != 0; at = (at + 1) & mask_) {
    const SlotNumber slot = buckets_[at] - 1;
    if (records_[slot].key == key) return slot;
  }
  return std::nullopt;
}

void SlotTable::insert(SlotNumber slot) {
  std::size_t at = bucket_of(records_[slot].key);
  while (buckets_[at] != 0) at = (at + 1) & mask_;
  buckets_[at] = slot + 1;
}

void SlotTable::erase(SlotNumber slot) {
  std::size_t hole = bucket_of(records_[slot].key);
  while (buckets_[hole] != slot + 1) {
    ASSERT(buckets_[hole] != 0, "a slot that is erased is in the table");
    hole = (hole + 1) & mask_;
  }
  // Slots behind the hole that a probe would no longer reach move up.
  for (std::size_t at = (hole + 1) & mask_; buckets_[at] != 0; at = (at + 1) & mask_) {
    const std::size_t wanted = bucket_of(records_[buckets_[at] - 1].key);
    if (((at - wanted) & mask_) >= ((at - hole) & mask_)) {
      buckets_[hole] = buckets_[at];
      hole = at;
    }
  }
  buckets_[hole] = 0;
}

}  // namespace pagoda::store

// SlotTable maps a key's digest to its slot: open addressing, linear probing, four bytes a bucket.
// The digests themselves stay in the records, so that a million slots cost eight megabytes here.
#pragma once

#include <cstdint>
#include <optional>

#include "base/large_array.h"
#include "store/disk/format.h"

namespace pagoda::store {

class SlotTable {
 public:
  // `records` holds the digest of every slot that is in the table; its address must not change.
  SlotTable(const LargeArray<SlotRecord>& records, std::size_t slots_max);

  std::optional<SlotNumber> find(const KeyDigest& key) const;
  // Inserts the key of records[slot], which the table lacks.
  void insert(SlotNumber slot);
  void erase(SlotNumber slot);

 private:
  std::size_t bucket_of(const KeyDigest& key) const;

  const LargeArray<SlotRecord>& records_;
  LargeArray<std::uint32_t> buckets_;  // slot + 1; 0: empty
  std::size_t mask_;
};

}  // namespace pagoda::store

#include "store/disk/slot_index.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/random.h"

namespace pagoda::store {
namespace {

// Makes keys of few home buckets, so that probes are long.
KeyDigest crowded_key(std::uint64_t number) {
  KeyDigest key;
  const std::uint64_t home = number % 3;
  std::memcpy(key.bytes.data(), &home, 8);
  number += 1;
  std::memcpy(key.bytes.data() + 8, &number, 8);
  return key;
}

SlotRecord record_of(std::uint64_t number) {
  SlotRecord record;
  record.key = crowded_key(number);
  record.sum = number;
  record.used_us = number;
  return record;
}

TEST(SlotTable, FindsWhatIsInItThroughAnyOrderOfComingAndGoing) {
  constexpr std::size_t kSlots = 24;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    LargeArray<SlotRecord> records(kSlots);
    SlotTable table(records, kSlots);
    std::map<std::uint64_t, SlotNumber> present;
    std::vector<SlotNumber> free;
    for (SlotNumber slot = 0; slot < kSlots; ++slot) free.push_back(slot);
    for (std::uint64_t step = 0; step < 400; ++step) {
      const std::uint64_t number = random_bits(seed, 1, step) % 40;
      const auto found = present.find(number);
      if (found != present.end()) {
        table.erase(found->second);
        free.push_back(found->second);
        present.erase(found);
      } else if (!free.empty()) {
        records[free.back()] = record_of(number);
        table.insert(free.back());
        present[number] = free.back();
        free.pop_back();
      }
      for (std::uint64_t key = 0; key < 40; ++key) {
        const auto slot = table.find(crowded_key(key));
        ASSERT_EQ(slot.has_value(), present.contains(key));
        if (slot) {
          ASSERT_EQ(*slot, present[key]);
        }
      }
    }
  }
}

TEST(SlotIndex, APinnedSlotIsNotEvicted) {
  SlotIndex index(2);
  index.finish_loading();
  for (std::uint64_t i = 0; i < 2; ++i) index.place(index.take(true).value(), record_of(i));
  const SlotNumber oldest = index.find(crowded_key(0)).value();
  index.pin(oldest);
  const SlotNumber taken = index.take(true).value();
  EXPECT_NE(taken, oldest);
  EXPECT_FALSE(index.take(true).has_value()) << "one is pinned, the other is taken";
  index.unpin(oldest);
  EXPECT_EQ(index.take(true), oldest);
  EXPECT_EQ(index.evicted(), 2u);
}

TEST(SlotIndex, OfTwoSlotsWithOneKeyTheLaterUsedIsLoaded) {
  for (const bool later_first : {false, true}) {
    SlotIndex index(4);
    SlotRecord older = record_of(7);
    SlotRecord later = record_of(7);
    later.used_us = 100;
    later.sum = 8;
    index.load(0, later_first ? later : older, true);
    index.load(1, later_first ? older : later, true);
    index.finish_loading();
    index.check();
    EXPECT_EQ(index.record(index.find(crowded_key(7)).value()).sum, 8u);
    EXPECT_EQ(index.slots_used(), 1u);
    const std::vector<SlotChange> changes = index.take_changes();
    ASSERT_EQ(changes.size(), 1u) << "the file is told";
    EXPECT_TRUE(changes[0].record.is_free());
  }
}

}  // namespace
}  // namespace pagoda::store

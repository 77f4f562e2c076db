// Maps a pair of symbols to its merge: a flat hash table, filled once, then only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/merge_list.h"

namespace pagoda::text {

class MergeTable {
 public:
  void reserve(std::size_t merges) {
    while (slots_.size() < merges * 2) grow();
  }

  // The first of equal pairs stays.
  void insert(std::uint32_t left, std::uint32_t right, Merge merge) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place_of(key_of(left, right))];
    if (slot.key != kFree) return;
    slot = {key_of(left, right), merge};
    ++count_;
  }

  Merge find(std::uint32_t left, std::uint32_t right) const {
    return slots_[place_of(key_of(left, right))].merge;
  }

 private:
  // Two symbols that are none never merge, so their key is free to mean an empty slot.
  static constexpr std::uint64_t kFree = UINT64_MAX;
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };

  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32 | right;
  }

  // Returns the slot that holds `key`, or the free slot where it would go.
  std::size_t place_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t hash = key * 0x9E3779B97F4A7C15u;
    std::size_t place = (hash ^ (hash >> 32)) & mask;
    while (slots_[place].key != key && slots_[place].key != kFree) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key != kFree) slots_[place_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);  // a power of two, at most half full
  std::size_t count_ = 0;
};

}  // namespace pagoda::text

// Many heaps over one set of numbered items, each item in at most one: pairing heaps, linked
// through the items' records (Fredman et al., 1986).
//
// Nothing is allocated after the start, and an item can be taken out from anywhere. 24 bytes an
// item; a push takes constant time, taking one out log n on average over many.
#pragma once

#include <cstdint>
#include <vector>

namespace pagoda::kv {

class LinkedHeaps {
 public:
  // A heap is known by its top item, kept by whoever owns the heap.
  using Item = std::uint32_t;
  static constexpr Item kNone = UINT32_MAX;

  explicit LinkedHeaps(std::uint32_t items) : records_(items) {}

  bool contains(Item item) const { return records_[item].in_heap; }
  std::int64_t key(Item item) const { return records_[item].key; }

  // The largest key on top; of equal ones the smallest item.
  void push(Item& top, Item item, std::int64_t key);
  // The item is in the heap of this top.
  void erase(Item& top, Item item);

  // Stops the program when links contradict each other or the item is in another heap. Returns how
  // many the heap has. Linear.
  std::uint32_t check(Item top) const;

 private:
  struct Record {
    std::int64_t key = 0;
    Item child = kNone;     // the first below it
    Item next = kNone;      // beside it
    Item previous = kNone;  // the one before it, or the one above when it is the first; a top: none
    bool in_heap = false;
  };
  static_assert(sizeof(Record) == 24);

  bool above(Item a, Item b) const {
    return records_[a].key != records_[b].key ? records_[a].key > records_[b].key : a < b;
  }
  Item meld(Item a, Item b);
  Item meld_children(Item parent);

  std::vector<Record> records_;
};

}  // namespace pagoda::kv

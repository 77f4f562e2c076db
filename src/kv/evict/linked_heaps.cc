#include "kv/evict/linked_heaps.h"

#include <utility>

#include "base/assert.h"

namespace pagoda::kv {

void LinkedHeaps::push(Item& top, Item item, std::int64_t key) {
  ASSERT(!records_[item].in_heap, "an item is in at most one heap");
  records_[item] = {.key = key, .in_heap = true};
  top = meld(top, item);
}

void LinkedHeaps::erase(Item& top, Item item) {
  Record& record = records_[item];
  ASSERT(record.in_heap, "what is taken out is there");
  if (item == top) {
    top = meld_children(item);
  } else {
    const bool is_first = records_[record.previous].child == item;
    Item& link = is_first ? records_[record.previous].child : records_[record.previous].next;
    link = record.next;
    if (record.next != kNone) records_[record.next].previous = record.previous;
    top = meld(top, meld_children(item));
  }
  record = {};
}

// Both are tops, or none.
LinkedHeaps::Item LinkedHeaps::meld(Item a, Item b) {
  if (a == kNone || b == kNone) return a == kNone ? b : a;
  if (above(b, a)) std::swap(a, b);
  Record& parent = records_[a];
  Record& child = records_[b];
  child.next = parent.child;
  child.previous = a;
  if (child.next != kNone) records_[child.next].previous = b;
  parent.child = b;
  return a;
}

// In pairs from the first to the last, then all pairs from the last to the first.
LinkedHeaps::Item LinkedHeaps::meld_children(Item parent) {
  const auto take = [this](Item& first) {
    const Item item = first;
    if (item != kNone) {
      first = std::exchange(records_[item].next, kNone);
      records_[item].previous = kNone;
    }
    return item;
  };
  Item first = records_[parent].child;
  Item pairs = kNone;  // a list through `next`, last pair first
  while (first != kNone) {
    const Item a = take(first);
    const Item b = take(first);
    const Item pair = meld(a, b);
    records_[pair].next = pairs;
    pairs = pair;
  }
  Item top = kNone;
  while (pairs != kNone) top = meld(top, take(pairs));
  return top;
}

std::uint32_t LinkedHeaps::check(Item top) const {
  if (top == kNone) return 0;
  ASSERT(records_[top].previous == kNone && records_[top].next == kNone, "H1: a top stands alone");
  std::uint32_t items = 0;
  std::vector<Item> todo = {top};
  while (!todo.empty()) {
    const Item parent = todo.back();
    todo.pop_back();
    ++items;
    ASSERT(records_[parent].in_heap, "H1: what is linked is in the heap");
    Item previous = parent;
    for (Item child = records_[parent].child; child != kNone; child = records_[child].next) {
      ASSERT(above(parent, child), "H1: what is below leaves later");
      ASSERT(records_[child].previous == previous, "H1: an item knows the one before it");
      previous = child;
      todo.push_back(child);
    }
  }
  return items;
}

}  // namespace pagoda::kv

// In which order items were used last: how many were used after this one?
//
// Every use takes the next position of a line, and a Fenwick tree counts who stands where. At the
// end of the line all move up without gaps, in their order: that is linear, and there is a position
// to spare for every item, so that it comes once in as many uses at most. A call takes log n.
//
//   positions   a . b c . . a         a was used again: its old position is empty
//   newer(b) = {c, a}
//
// Items are of two kinds, counted apart: the first `sampled` numbers, and `hot` ones after them.
// 20 bytes an item; nothing is allocated after the start.
#pragma once

#include <cstdint>
#include <vector>

namespace pagoda::kv {

class RecencyOrder {
 public:
  using Item = std::uint32_t;

  struct Counts {
    std::uint16_t sampled = 0;
    std::uint16_t hot = 0;
    bool operator==(const Counts&) const = default;
  };

  RecencyOrder(std::uint16_t sampled, std::uint16_t hot);

  bool contains(Item item) const { return position_of_[item] != kNone; }
  // It was used last of all.
  void use(Item item);
  void forget(Item item);
  // `to`, which is not in the order, stands where `from` stood.
  void replace(Item from, Item to);
  // Those used after the item, which is in the order.
  Counts newer(Item item) const;

  std::size_t bytes() const;
  // Stops the program when positions and counts contradict each other (README: V1). Linear.
  void check() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  bool is_hot(Item item) const { return item >= sampled_; }
  void add(std::uint32_t position, Item item, int by);
  Counts up_to(std::uint32_t position) const;
  void move_up();

  std::uint32_t sampled_;
  std::uint32_t next_ = 0;  // the first position that was never taken
  Counts all_;
  std::vector<Counts> sums_;                // Fenwick tree over positions, from 1
  std::vector<std::uint32_t> item_at_;      // [position]
  std::vector<std::uint32_t> position_of_;  // [item]
};

}  // namespace pagoda::kv

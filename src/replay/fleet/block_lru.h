// A bounded set of a trace's blocks, by number, of which the least recently used leaves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

namespace pagoda::replay {

class BlockLru {
 public:
  explicit BlockLru(std::uint64_t blocks_max) : blocks_max_(blocks_max) {}

  bool contains(std::uint32_t block) const { return places_.contains(block); }
  std::uint64_t size() const { return places_.size(); }

  // How many of these blocks are there, up to the first that is not. That is no use.
  std::uint64_t found(std::span<const std::uint32_t> blocks) const {
    std::uint64_t found = 0;
    while (found < blocks.size() && contains(blocks[found])) ++found;
    return found;
  }

  // The beginning of a prompt is used, all of it at once: of its blocks the last leaves first.
  void use(std::span<const std::uint32_t> blocks) {
    for (std::size_t i = std::min<std::uint64_t>(blocks.size(), blocks_max_); i-- > 0;) {
      const auto [place, fresh] = places_.try_emplace(blocks[i]);
      if (fresh) {
        order_.push_front(blocks[i]);
        place->second = order_.begin();
      } else {
        order_.splice(order_.begin(), order_, place->second);
      }
      if (places_.size() <= blocks_max_) continue;
      places_.erase(order_.back());
      order_.pop_back();
    }
  }

 private:
  using Order = std::list<std::uint32_t>;

  std::uint64_t blocks_max_;
  Order order_;  // the most recently used first
  std::unordered_map<std::uint32_t, Order::iterator> places_;
};

}  // namespace pagoda::replay

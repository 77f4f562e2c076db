// Edges of a tree with many children: (from, label) -> to, found in one step.
//
// A hash table with linear probing whose slots hold the whole edge, so that what is found is exact.
// The hash is keyed: a client who does not know the seed cannot aim at a long probe. 17 to 26 bytes
// an edge; growing moves all edges, which reserve() avoids.
#pragma once

#include <cstdint>

#include "base/large_array.h"

namespace pagoda::kv {

class EdgeTable {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;  // never a `to`

  explicit EdgeTable(std::uint64_t seed);

  std::size_t size() const { return size_; }
  // Takes the memory of this many edges at once.
  void reserve(std::size_t edges);

  // Where the edge leads, or kNone.
  std::uint32_t find(std::uint32_t from, std::uint32_t label) const {
    return slots_[slot_of(from, label)].to;
  }
  // Adds the edge, or turns it to another end.
  void set(std::uint32_t from, std::uint32_t label, std::uint32_t to);
  // The edge exists.
  void erase(std::uint32_t from, std::uint32_t label);

  // Calls visit(from, label, to) for every edge, in no order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Edge& edge : slots_) {
      if (edge.to != kNone) visit(edge.from, edge.label, edge.to);
    }
  }

 private:
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t label = 0;
    std::uint32_t to = kNone;  // kNone: the slot is empty
  };
  __extension__ using Wide = unsigned __int128;

  // The slot an edge would like to have.
  std::size_t home(std::uint32_t from, std::uint32_t label) const {
    const Wide product = Wide{from ^ keys_[0]} * (label ^ keys_[1]);
    const auto hash = static_cast<std::uint64_t>(product >> 64 ^ product);
    return static_cast<std::size_t>(Wide{hash} * slots_.size() >> 64);
  }
  std::size_t after(std::size_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }
  // The slot of the edge, or the empty one where it would go.
  std::size_t slot_of(std::uint32_t from, std::uint32_t label) const {
    std::size_t slot = home(from, label);
    for (;; slot = after(slot)) {
      const Edge& edge = slots_[slot];
      if ((edge.from == from && edge.label == label) || edge.to == kNone) return slot;
    }
  }
  void resize(std::size_t slots);

  std::uint64_t keys_[2];
  LargeArray<Edge> slots_;
  std::size_t size_ = 0;
};

}  // namespace pagoda::kv

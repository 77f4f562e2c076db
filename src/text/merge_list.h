// Merges neighbouring symbols, best pair first, ties leftmost, until no pair merges. Byte-pair and
// sentence-piece encoding both do this; they differ in which pairs merge.
//
// O(n log n): a heap of (rank, node) over a linked list; a stale entry is recognised by the rank
// that its node has now. Lists of a word's length skip the heap and scan for the best pair.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace pagoda::text {

// The symbol that a pair merges into. A lower rank merges earlier.
struct Merge {
  static constexpr std::uint32_t kNever = UINT32_MAX;
  std::uint32_t rank = kNever;
  std::uint32_t symbol = 0;
};

// A MergeList is reused between texts, so that merging a word allocates nothing.
class MergeList {
 public:
  struct Span {
    std::uint32_t begin;  // offset in the text, in bytes
    std::uint32_t end;
    std::uint32_t symbol;
  };

  void clear() { nodes_.clear(); }
  // Frees the memory of lists longer than `symbols`.
  void release_over(std::size_t symbols) {
    if (nodes_.capacity() > symbols) nodes_ = {};
    if (heap_.capacity() > symbols) heap_ = {};
  }
  // Symbols are appended in order and without gaps; the last one ends with the text.
  void append(std::uint32_t begin, std::uint32_t symbol) {
    const auto place = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({begin, symbol, place - 1, place + 1, {}});
  }

  // `merge_of(Span left, Span right)` returns a Merge and may be called more than once for a pair.
  template <class MergeOf>
  void merge(std::uint32_t text_bytes, const MergeOf& merge_of) {
    text_bytes_ = text_bytes;
    if (nodes_.empty()) return;
    nodes_.back().next = kEnd;
    for (std::uint32_t place = 0; place < nodes_.size(); ++place) rank_pair(place, merge_of);
    if (nodes_.size() <= kScanned) {
      merge_by_scan(merge_of);
    } else {
      merge_by_heap(merge_of);
    }
  }

  // Calls visit(Span) for each remaining symbol, in order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    if (nodes_.empty()) return;
    for (std::uint32_t place = 0; place != kEnd; place = nodes_[place].next) visit(span_of(place));
  }

 private:
  static constexpr std::uint32_t kEnd = UINT32_MAX;
  static constexpr std::size_t kScanned = 32;

  struct Node {
    std::uint32_t begin;
    std::uint32_t symbol;
    std::uint32_t previous;  // kEnd for the first node, which index - 1 wraps to
    std::uint32_t next;
    Merge with_next;  // kNever also once this node was merged into the one before it
  };

  Span span_of(std::uint32_t place) const {
    const Node& node = nodes_[place];
    const std::uint32_t end = node.next == kEnd ? text_bytes_ : nodes_[node.next].begin;
    return {node.begin, end, node.symbol};
  }

  template <class MergeOf>
  void rank_pair(std::uint32_t place, const MergeOf& merge_of) {
    Node& node = nodes_[place];
    node.with_next = node.next == kEnd ? Merge{} : merge_of(span_of(place), span_of(node.next));
  }

  // Merges the node with the next one and ranks the pairs on both sides.
  template <class MergeOf>
  void merge_with_next(std::uint32_t place, const MergeOf& merge_of) {
    Node& node = nodes_[place];
    Node& right = nodes_[node.next];
    right.with_next = Merge{};
    node.symbol = node.with_next.symbol;
    node.next = right.next;
    if (node.next != kEnd) nodes_[node.next].previous = place;
    rank_pair(place, merge_of);
    if (node.previous != kEnd) rank_pair(node.previous, merge_of);
  }

  template <class MergeOf>
  void merge_by_scan(const MergeOf& merge_of) {
    while (true) {
      std::uint32_t best = 0;
      for (std::uint32_t place = nodes_[0].next; place != kEnd; place = nodes_[place].next) {
        if (nodes_[place].with_next.rank < nodes_[best].with_next.rank) best = place;
      }
      if (nodes_[best].with_next.rank == Merge::kNever) return;
      merge_with_next(best, merge_of);
    }
  }

  void push(std::uint32_t place) {
    const std::uint32_t rank = nodes_[place].with_next.rank;
    if (rank == Merge::kNever) return;
    heap_.push_back(std::uint64_t{rank} << 32 | place);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  template <class MergeOf>
  void merge_by_heap(const MergeOf& merge_of) {
    heap_.clear();
    for (std::uint32_t place = 0; place < nodes_.size(); ++place) push(place);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const std::uint64_t top = heap_.back();
      heap_.pop_back();
      const auto place = static_cast<std::uint32_t>(top);
      if (nodes_[place].with_next.rank != top >> 32) continue;
      merge_with_next(place, merge_of);
      push(place);
      if (nodes_[place].previous != kEnd) push(nodes_[place].previous);
    }
  }

  std::uint32_t text_bytes_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> heap_;
};

}  // namespace pagoda::text

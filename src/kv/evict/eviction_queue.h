// Candidates for eviction by score, corrected lazily.
//
// A block enters once and stays while it is used again: its score can only have fallen since, so
// the entry is an upper bound. pop() compares the top entry with the block's score of now; when it
// fell, the entry sinks to its place and the next top is tried. So a use costs nothing here, and
// what pop() returns is exact. A heap of 16 bytes an entry; O(log n) a pop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/ids.h"

namespace pagoda::kv {

class EvictionQueue {
 public:
  std::size_t size() const { return entries_.size(); }
  void reserve(std::size_t entries) { entries_.reserve(entries); }
  void push(BlockId block, std::int64_t score);

  // Tells the queue whether the top entry is returned or dropped.
  enum class Verdict : std::uint8_t {
    kTake,    // it is evictable: return it
    kForget,  // not evictable now: take it out; it is pushed again when it becomes so
  };

  // The evictable block with the largest score, taken out; nothing when there is none.
  // score_now(BlockId) is at most the score it entered with; judge(BlockId) gives a Verdict.
  template <class ScoreNow, class Judge>
  std::optional<BlockId> pop(ScoreNow&& score_now, Judge&& judge) {
    const std::optional<BlockId> block = top(score_now, judge);
    if (block) remove_top();
    return block;
  }

  // The same, left where it is: the top entry.
  template <class ScoreNow, class Judge>
  std::optional<BlockId> top(ScoreNow&& score_now, Judge&& judge) {
    while (!entries_.empty()) {
      const BlockId block(entries_.front().block);
      if (judge(block) == Verdict::kForget) {
        remove_top();
        continue;
      }
      const std::int64_t score = score_now(block);
      if (score < entries_.front().score) {
        entries_.front().score = score;
        sink(0);
        continue;
      }
      return block;
    }
    return std::nullopt;
  }
  BlockId take_top() {
    const BlockId block(entries_.front().block);
    remove_top();
    return block;
  }

 private:
  struct Entry {
    std::int64_t score;
    std::uint32_t block;
    // Larger scores first; ties by block, so that the order is total.
    bool above(const Entry& other) const {
      return score != other.score ? score > other.score : block < other.block;
    }
  };

  void remove_top();
  void sink(std::size_t at);

  std::vector<Entry> entries_;  // a heap of four children a node
};

}  // namespace pagoda::kv

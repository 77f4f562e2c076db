// LoadRecord says what tiers gave to one sequence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pagoda::engine {

inline constexpr std::size_t kTiersMax = 4;

// Tokens of a prompt that follow each other and came from one store.
struct LoadedRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;  // the token behind the last one
  std::size_t store = 0;
  bool after_start = false;  // they came while the sequence computed what is before them
};

struct LoadRecord {
  std::array<std::uint64_t, kTiersMax> tokens = {};  // [store], tokens of its prompt
  std::uint64_t tokens_offered = 0;      // tokens that the tiers had and the pool had not
  std::vector<LoadedRange> ranges = {};  // in the order in which they came; they may overlap
  double waited_s = 0;                   // seconds in the queue, for pages on their way
  double saved_s = 0;  // an estimate: what computing those tokens would have taken beyond that

  // Counts the tokens that a store gave.
  void add(const LoadedRange& range) {
    tokens[range.store] += range.end - range.first;
    if (!ranges.empty()) {
      LoadedRange& last = ranges.back();
      const bool goes_on = last.end == range.first && last.store == range.store;
      if (goes_on && last.after_start == range.after_start) {
        last.end = range.end;
        return;
      }
    }
    ranges.push_back(range);
  }

  std::uint64_t tokens_loaded() const {
    std::uint64_t all = 0;
    for (const std::uint64_t count : tokens) all += count;
    return all;
  }
};

}  // namespace pagoda::engine

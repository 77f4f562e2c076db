#include "kv/evict/eviction_queue.h"

#include <algorithm>

namespace pagoda::kv {
namespace {

constexpr std::size_t kArity = 4;

}  // namespace

void EvictionQueue::push(BlockId block, std::int64_t score) {
  const Entry entry = {score, block.value()};
  std::size_t at = entries_.size();
  entries_.push_back(entry);
  while (at > 0) {
    const std::size_t above = (at - 1) / kArity;
    if (!entry.above(entries_[above])) break;
    entries_[at] = entries_[above];
    at = above;
  }
  entries_[at] = entry;
}

void EvictionQueue::remove_top() {
  entries_.front() = entries_.back();
  entries_.pop_back();
  if (!entries_.empty()) sink(0);
}

void EvictionQueue::sink(std::size_t at) {
  const Entry entry = entries_[at];
  for (;;) {
    const std::size_t first = at * kArity + 1;
    if (first >= entries_.size()) break;
    const std::size_t last = std::min(first + kArity, entries_.size());
    std::size_t best = first;
    for (std::size_t child = first + 1; child < last; ++child) {
      if (entries_[child].above(entries_[best])) best = child;
    }
    if (!entries_[best].above(entry)) break;
    entries_[at] = entries_[best];
    at = best;
  }
  entries_[at] = entry;
}

}  // namespace pagoda::kv

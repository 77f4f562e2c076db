#include "replay/belady.h"

#include <queue>

namespace pagoda::replay {

TraceOracle::TraceOracle(const Trace& trace, const BlockNumbers& numbers)
    : trace_(trace), numbers_(numbers), next_touch_(trace.ids.size(), kNever) {
  std::vector<std::uint64_t> last_touch(numbers.unique(), kNever);  // [block]
  for (const TraceRequest& request : trace.requests) {
    for (std::uint64_t touch = request.first; touch < request.first + request.blocks; ++touch) {
      std::uint64_t& last = last_touch[numbers.of(touch)];
      if (last != kNever) next_touch_[last] = touch;
      last = touch;
    }
  }
}

HitCounts TraceOracle::infinite(std::uint64_t block_tokens) const {
  HitCounts counts;
  for (std::size_t i = 0; i < trace_.requests.size(); ++i) {
    counts.add(trace_.requests[i], numbers_.known(i), block_tokens);
  }
  return counts;
}

HitCounts TraceOracle::belady(std::uint64_t capacity_blocks, std::uint64_t block_tokens) const {
  HitCounts counts;
  // A block that stays is known by its next touch. Touches are numbered by request, then depth.
  std::vector<bool> stays(trace_.ids.size(), false);
  std::priority_queue<std::uint64_t> touches;  // those to come; past ones sink below them
  std::uint64_t staying = 0;
  for (const TraceRequest& request : trace_.requests) {
    const std::uint64_t end = request.first + request.blocks;
    std::uint64_t hit = 0;
    while (hit < request.blocks && stays[request.first + hit]) ++hit;
    counts.add(request, hit, block_tokens);
    staying -= hit;
    for (std::uint64_t touch = request.first; touch < end; ++touch) {
      if (next_touch_[touch] == kNever) continue;
      stays[next_touch_[touch]] = true;
      touches.push(next_touch_[touch]);
      ++staying;
    }
    for (; staying > capacity_blocks; --staying) {
      stays[touches.top()] = false;
      touches.pop();
    }
  }
  return counts;
}

}  // namespace pagoda::replay

#include "replay/belady.h"

#include <queue>

#include "base/assert.h"
#include "kv/prefix/prefix_tree.h"

namespace pagoda::replay {

TraceOracle::TraceOracle(const Trace& trace)
    : trace_(trace), next_touch_(trace.ids.size(), kNever) {
  kv::PrefixTree tree({.block_tokens = 1});
  const kv::NodeId root = tree.add_root();
  std::vector<std::uint64_t> last_touch = {kNever};  // [node]
  blocks_known_.reserve(trace.requests.size());
  for (const TraceRequest& request : trace.requests) {
    kv::NodeId at = root;
    std::uint64_t known = 0;
    for (std::uint64_t touch = request.first; touch < request.first + request.blocks; ++touch) {
      const std::span<const TokenId> id(&trace.ids[touch], 1);
      kv::SearchWork work;
      const auto found = tree.best_child(at, kv::kPublic, id, work);
      if (found) {
        at = found->node;
        next_touch_[last_touch[at.value()]] = touch;
        last_touch[at.value()] = touch;
        ++known;
      } else {
        at = tree.insert(at, kv::kPublic, id);
        ASSERT(at.value() == last_touch.size(), "without erasing, nodes count from 0");
        last_touch.push_back(touch);
      }
    }
    blocks_known_.push_back(known);
  }
  unique_blocks_ = last_touch.size() - 1;  // without the root
}

HitCounts TraceOracle::infinite(std::uint64_t block_tokens) const {
  HitCounts counts;
  for (std::size_t i = 0; i < trace_.requests.size(); ++i) {
    counts.add(trace_.requests[i], blocks_known_[i], block_tokens);
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

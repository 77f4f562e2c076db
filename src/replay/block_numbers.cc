#include "replay/block_numbers.h"

#include "base/assert.h"
#include "kv/prefix/prefix_tree.h"

namespace pagoda::replay {

BlockNumbers::BlockNumbers(const Trace& trace) : numbers_(trace.ids.size(), UINT32_MAX) {
  kv::PrefixTree tree({.block_tokens = 1});
  const kv::NodeId root = tree.add_root();
  known_.reserve(trace.requests.size());
  for (const TraceRequest& request : trace.requests) {
    kv::NodeId at = root;
    std::uint64_t known = 0;
    for (std::uint64_t touch = request.first; touch < request.first + request.blocks; ++touch) {
      const std::span<const TokenId> id(&trace.ids[touch], 1);
      kv::SearchWork work;
      if (const auto found = tree.best_child(at, kv::kPublic, id, work)) {
        at = found->node;
        ++known;
      } else {
        at = tree.insert(at, kv::kPublic, id);
        ++unique_;
        ASSERT(at.value() == unique_, "without erasing, nodes count from the root, which is 0");
      }
      numbers_[touch] = static_cast<std::uint32_t>(at.value() - 1);
    }
    known_.push_back(known);
  }
}

}  // namespace pagoda::replay

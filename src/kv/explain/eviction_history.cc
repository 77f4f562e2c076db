#include "kv/explain/eviction_history.h"

namespace pagoda::kv {

EvictionHistory::EvictionHistory(const Options& options, const PrefixTree& tree,
                                 const BlockIdentities& identities, const CacheClock& clock)
    : tree_(tree), identities_(identities), clock_(clock) {
  if (options.records_max == 0) return;
  log_.emplace(options.records_max);
  last_held_.resize(options.blocks, 0);
}

void EvictionHistory::page_leaves(NodeId node, BlockId block, EvictionCause cause,
                                  std::uint32_t tenant) {
  if (!log_) return;
  const EvictionRecord record = {.left_ns = clock_.time_ns,
                                 .idle = now() - last_held_[block.value()],
                                 .account = tenant,
                                 .cause = cause};
  const NodeId parent = tree_.parent(node);
  const SaltId region = tree_.region(node);
  const auto tokens = tree_.tokens(node);
  log_->add(tree_.is_whole(node) ? identities_.of(node) : identities_.below(parent, region, tokens),
            record);
  const std::uint32_t end = tree_.prompt_end(node);
  if (end > 0 && end < tokens.size()) {
    log_->add(identities_.below(parent, region, tokens.first(end)), record);
  }
}

}  // namespace pagoda::kv

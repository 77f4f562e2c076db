#include "kv/curve/curve_feed.h"

namespace pagoda::kv {

CurveFeed::CurveFeed(const CacheOptions& options, const Parts& parts)
    : in_(parts), policy_(*options.policy) {
  if (!options.keeps_curve()) return;
  curve_.emplace(LiveCurveOptions{.blocks = options.blocks,
                                  .groups = parts.tree.groups(),
                                  .block_tokens = options.tokens_weighed()});
}

// Counts the whole blocks that could have been found.
void CurveFeed::request_opened(const LookupScope& scope, std::span<const NodeId> nodes,
                               std::span<const TokenId> prompt, const RequestStats& request) {
  if (!curve_ || prompt.empty()) return;
  const std::uint64_t block_tokens = in_.tree.block_tokens();
  const std::uint64_t blocks = scope.findable(prompt).size() / block_tokens;
  asked_.clear();
  for (const NodeId node : nodes) asked_.push_back(in_.identities.of(node));
  const NodeId last = nodes.empty() ? scope.root : nodes.back();
  std::uint64_t above = in_.identities.of(last);
  SaltId region = in_.tree.region(last);
  for (std::uint64_t block = asked_.size(); block < blocks; ++block) {
    region = scope.region(region, (block + 1) * block_tokens);
    above = block_identity(above, in_.salts.key(region),
                           prompt.subspan(block * block_tokens, block_tokens));
    asked_.push_back(above);
  }
  curve_->opened(asked_, request, in_.clock.time_s());
}

void CurveFeed::request_closed(std::span<const NodeId> nodes, const RequestStats& request,
                               bool ends_here) {
  if (!curve_) return;
  curve_->closed(
      nodes.size(), [&](std::uint64_t block) { return in_.identities.of(nodes[block]); }, request,
      in_.clock.time_s(), ends_here);
}

}  // namespace pagoda::kv

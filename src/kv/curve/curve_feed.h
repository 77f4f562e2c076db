// Feeds the live curve with the blocks that requests ask for and use (README: L3).
//
// Told: a request was opened, a request is closed. Answers: the curve's statistics. Nothing else in
// the cache depends on it. Without a curve it takes no memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "kv/block_identities.h"
#include "kv/cache_clock.h"
#include "kv/cache_options.h"
#include "kv/curve.h"
#include "kv/curve/live_curve.h"
#include "kv/evict/request_stats.h"
#include "kv/ids.h"
#include "kv/lookup_scope.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/salt_table.h"

namespace pagoda::kv {

class CurveFeed {
 public:
  // All of them must outlive the feed.
  struct Parts {
    const PrefixTree& tree;
    const SaltTable& salts;
    const BlockIdentities& identities;
    const CacheClock& clock;
  };

  CurveFeed(const CacheOptions& options, const Parts& parts);

  bool enabled() const { return curve_.has_value(); }

  // A request asks for its prompt, of which it found the whole blocks `nodes`.
  void request_opened(const LookupScope& scope, std::span<const NodeId> nodes,
                      std::span<const TokenId> prompt, const RequestStats& request);
  // A request ends that used these whole blocks. `ends_here`: no partial block follows them.
  void request_closed(std::span<const NodeId> nodes, const RequestStats& request, bool ends_here);

  // Returns the hit rates of other sizes and policies; empty without a curve.
  CurveStats stats() const { return curve_ ? curve_->stats(policy_) : CurveStats(); }
  // Blocks that the curve has counted: its statistics change with this number.
  std::uint64_t blocks_asked() const { return curve_ ? curve_->blocks_asked() : 0; }

  // Stops the program when the curve contradicts itself (README: V1 to V3). Its size does not
  // shrink with the cache's, so that only every 64th tick is looked at.
  void check() const {
    if (curve_ && in_.clock.tick % 64 == 0) curve_->check();
  }

 private:
  Parts in_;
  const EvictionPolicy& policy_;  // the cache's own
  std::optional<LiveCurve> curve_;
  std::vector<std::uint64_t> asked_;  // identities of the prompt that is being opened
};

}  // namespace pagoda::kv

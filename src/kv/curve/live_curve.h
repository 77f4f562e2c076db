// The live curve predicts a running cache's hit rates at other sizes and under other policies, from
// the sampled curve of lru and scaled shadow caches of every policy, at half, once and twice the
// size.
//
// A shadow has few blocks and errs by its sample; but shadows of one size follow the same sample,
// so that what they differ by errs much less. What is said of a policy is therefore the curve's
// figure for lru at that size, which is the better one, and what the policy's shadow found more or
// less than the shadow of lru did. Measured: docs/notes/hit_rate_curve.md. Of a policy that samples
// do not show nothing is said, unless its shadow has all blocks.
//
// A use of a block that is not sampled costs a vote and a few comparisons. At most 2 MiB, taken at
// the start, whatever the size of the cache. Thread rule: its owner's, the cache's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/curve.h"
#include "kv/curve/hit_rate_curve.h"
#include "kv/curve/shadow_cache.h"
#include "kv/evict/policy.h"
#include "kv/evict/request_stats.h"

namespace pagoda::kv {

struct LiveCurveOptions {
  std::uint32_t blocks = 1;        // pages of the cache
  std::uint32_t groups = 1;        // a block of tokens counts with a page of each
  std::uint32_t block_tokens = 1;  // what positions are counted in
  HitRateCurveOptions curve = {.sampled_max = 16384, .hot_max = 4096};
  std::uint16_t shadow_blocks = 424;  // at most, of each
};

class LiveCurve {
 public:
  explicit LiveCurve(const LiveCurveOptions& options);

  // A request asks for these blocks, head first (kv/block_identity.h).
  void opened(std::span<const std::uint64_t> identities, const RequestStats& request,
              std::int64_t time_s);

  // A request ends that had so many whole blocks: it generated some, and used all until now.
  // identity_of(i) is that of block i. `ends_here`: nothing came after the last of them.
  template <class IdentityOf>
  void closed(std::uint64_t blocks, const IdentityOf& identity_of, const RequestStats& request,
              std::int64_t time_s, bool ends_here) {
    for (std::uint64_t i = blocks; i-- > 0;) curve_.renew(identity_of(i));
    for (Scale& scale : scales_) {
      scale.sample.clear();
      for (std::uint64_t i = 0; i < blocks; ++i) add_to_sample(scale, identity_of(i), i);
      const bool last_is_sampled = blocks > 0 && is_sampled(scale, identity_of(blocks - 1));
      close_shadows(scale, request, time_s, ends_here && last_is_sampled);
    }
  }

  // Returns the curve of lru and a row for each policy, in the order of eviction_policies().
  CurveStats stats(const EvictionPolicy& own) const;
  std::uint64_t blocks_asked() const { return curve_.blocks_asked(); }
  // Stops the program when what is remembered contradicts itself (README: V1 to V3). Linear.
  void check() const;

 private:
  // Shadows of one size, one for each policy.
  struct Scale {
    double size = 1;                       // the cache's is 1
    double rate = 1;                       // the share of blocks that is sampled
    std::uint64_t threshold = UINT64_MAX;  // identities below it are
    std::vector<ShadowCache> shadows;      // [policy]
    std::vector<std::uint64_t> found;      // [policy]
    std::vector<SampledBlock> sample;      // of the request that is served
  };

  Scale make_scale(double size) const;
  static bool is_sampled(const Scale& scale, std::uint64_t identity) {
    return identity < scale.threshold;
  }
  // Adds a block if it is sampled; a request's blocks beyond what a shadow has room for are left
  // out.
  void add_to_sample(Scale& scale, std::uint64_t identity, std::uint64_t index) const {
    if (!is_sampled(scale, identity) || scale.sample.size() == scale.sample.capacity()) return;
    scale.sample.push_back({identity, index * options_.block_tokens});
  }
  static void close_shadows(Scale& scale, const RequestStats& request, std::int64_t time_s,
                            bool ends_here);
  std::uint64_t nodes_at(double size) const;
  std::optional<double> rate_of(const Scale& scale, std::size_t policy) const;

  LiveCurveOptions options_;
  HitRateCurve curve_;
  std::array<Scale, 3> scales_;  // half, same, twice
};

}  // namespace pagoda::kv

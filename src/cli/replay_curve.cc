#include "cli/replay_curve.h"

#include "kv/block_identity.h"
#include "kv/curve/hit_rate_curve.h"

namespace pagoda::cli {

SampledCurve sample_curve(const Trace& trace, std::span<const std::uint64_t> capacity_blocks) {
  kv::HitRateCurve curve;
  std::vector<std::uint64_t> identities;
  for (const TraceRequest& request : trace.requests) {
    identities.clear();
    std::uint64_t above = kv::root_identity(0, kv::NodeId(0));
    for (const TokenId& id : trace.prompt(request).first(request.blocks)) {
      above = kv::block_identity(above, kv::kPublicKey, {&id, 1});
      identities.push_back(above);
    }
    curve.request(identities);
  }
  SampledCurve sampled = {.blocks_hit_rates = {}, .sampling_rate = curve.sampling_rate()};
  for (const std::uint64_t blocks : capacity_blocks) {
    sampled.blocks_hit_rates.push_back(curve.hit_rate(blocks));
  }
  return sampled;
}

}  // namespace pagoda::cli

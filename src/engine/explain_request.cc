#include "engine/explain_request.h"

#include <algorithm>

namespace pagoda::engine {

SequenceRecord explain_request(const Request& request, const kv::CacheScope& scope,
                               const ExplainedBy& parts) {
  const bool computes_all = request.sampling.prompt_logprobs.has_value();
  SequenceRecord record;
  record.prompt_tokens = request.prompt.size();
  kv::Explanation& why = record.explanation.emplace(parts.scheduler.explain(
      scope, request.prompt, parts.cache.match(scope, request.prompt), computes_all));
  TurnEstimate& turn = record.estimate.emplace();
  if (parts.tiers != nullptr && !computes_all) {
    turn.tiers = parts.tiers->explain(scope, request.prompt, request.block_hashes, why);
  }
  // The part that a running sequence computes is queued there.
  const bool in_work = why.reason == kv::MissReason::kInWork;
  const std::uint64_t shared =
      in_work ? std::max(why.stops_at(), why.tokens_reachable) : why.stops_at();
  turn.tokens_to_compute = request.prompt.size() - shared;
  turn.tokens_queued = parts.scheduler.tokens_before(request.priority);
  turn.tokens_per_second = parts.meters.prompt_rate().units_per_second();
  record.prompt_tokens_cached = why.tokens_matched;
  return record;
}

}  // namespace pagoda::engine

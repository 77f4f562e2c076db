#include "server/api/kv_estimate.h"

#include <utility>

namespace pagoda::server {
namespace {

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json estimate_json(const engine::TurnEstimate& turn, const kv::Explanation& why, Json missing,
                   const ServedModel& model) {
  Json by_tier = {{"memory", why.tokens_matched}};
  for (std::size_t i = 0; i < model.tiers.size(); ++i) {
    by_tier[model.tiers[i]] =
        turn.tiers.answers_later[i] ? Json(nullptr) : Json(turn.tiers.tokens[i]);
  }
  std::optional<double> ttft_ms = turn.seconds();
  if (ttft_ms) *ttft_ms *= 1e3;
  return {{"object", "kv.estimate"},
          {"model", model.name()},
          {"prompt_tokens", why.prompt_tokens},
          {"cached_tokens", why.stops_at()},
          {"cached_tokens_by_tier", std::move(by_tier)},
          {"tokens_to_compute", turn.tokens_to_compute},
          {"tokens_queued", turn.tokens_queued},
          {"prefill_tokens_per_second", optional_json(turn.tokens_per_second)},
          {"expected_ttft_ms", optional_json(ttft_ms)},
          {"missing", std::move(missing)}};
}

}  // namespace pagoda::server

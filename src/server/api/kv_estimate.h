// POST /v1/kv/estimate: what a completion of the same body would find in the cache and how long it
// would wait, for routers that choose among servers.
#pragma once

#include "engine/reply.h"
#include "kv/explanation.h"
#include "server/json.h"
#include "server/served_model.h"

namespace pagoda::server {

// {"object": "kv.estimate", "model": "…", "prompt_tokens": 90, "cached_tokens": 80,
//  "cached_tokens_by_tier": {"memory": 64, "disk": 16, "redis": null}, "tokens_to_compute": 10,
//  "tokens_queued": 0, "prefill_tokens_per_second": 1000.0, "expected_ttft_ms": 14.0,
//  "missing": {…}}
// null: a store that answers later is not asked, a speed was not measured yet. `missing` is what
// /cache/explain says.
Json estimate_json(const engine::TurnEstimate& turn, const kv::Explanation& why, Json missing,
                   const ServedModel& model);

}  // namespace pagoda::server

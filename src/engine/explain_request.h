// Explains a request as if it ran now, and computes nothing: how much of its prompt is cached and
// why not more, and when its first token would come.
//
// Thread rule: the engine's thread.
#pragma once

#include "engine/engine_meters.h"
#include "engine/reply.h"
#include "engine/request.h"
#include "engine/tiers/tiers.h"
#include "kv/cache.h"
#include "sched/scheduler.h"

namespace pagoda::engine {

struct ExplainedBy {
  const kv::Cache& cache;
  sched::Scheduler& scheduler;
  const EngineMeters& meters;
  Tiers* tiers = nullptr;  // nullptr: there are none
};

// Returns a record with an explanation and an estimate.
SequenceRecord explain_request(const Request& request, const kv::CacheScope& scope,
                               const ExplainedBy& parts);

}  // namespace pagoda::engine

// One request alone on a backend whichever: what engine/single_sequence.h is for a decoder on the
// CPU.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "engine/backends/backend.h"
#include "engine/draft_counts.h"
#include "engine/single_sequence.h"

namespace pagoda::app {

// The output, and how many draft tokens it had.
struct EngineOutput : engine::SingleOutput {
  engine::DraftCounts drafts = {};
};

// Ends at the backend's end tokens; `stops`, `kv_cache` and `on_prefill` of the request mean
// nothing here. Fails as engine::generate_single does, and when the device is lost.
Result<EngineOutput> generate_on(engine::Backend& backend, const engine::SingleRequest& request,
                                 const Clock& clock);

}  // namespace pagoda::app

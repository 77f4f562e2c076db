// One request alone on a backend whichever: what engine/single_sequence.h is for a decoder on the
// CPU.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "engine/backends/backend.h"
#include "engine/single_sequence.h"

namespace pagoda::app {

// Ends at the backend's end tokens; `stops`, `kv_cache` and `on_prefill` of the request mean
// nothing here. Fails as engine::generate_single does, and when the device is lost.
Result<engine::SingleOutput> generate_on(engine::Backend& backend,
                                         const engine::SingleRequest& request, const Clock& clock);

}  // namespace pagoda::app

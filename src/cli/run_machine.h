// One request alone on a machine whichever: what engine/solo.h is for a decoder on the CPU.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "engine/machine.h"
#include "engine/solo.h"

namespace pagoda::cli {

// Ends at the machine's end tokens; `stops`, `kv_cache` and `on_prefill` of the request mean
// nothing here. Fails as engine::answer_alone does, and when the device is lost.
Result<engine::SoloAnswer> answer_on(engine::Machine& machine, const engine::SoloRequest& request,
                                     const Clock& clock);

}  // namespace pagoda::cli

// The key under which pagoda eval stores its verdicts.
#pragma once

#include <string>
#include <utility>

#include "app/verdict_store.h"
#include "engine/backends/backend.h"

namespace pagoda::eval {

// Verdicts about configurations of the KV cache (app::VerdictKey::subject). The choice is the
// configuration's name, which says what layers are skipped; the numerics are
// engine::Backend::numerics_id().
inline constexpr const char* kKvSubject = "kv";

// Raised with every change of how attention is observed: rows stay the same, but which pages a KV
// policy drops may not.
inline constexpr const char* kObservationVersion = " observed.2";

// Returns the key of a configuration that the backend has.
inline app::VerdictKey kv_verdict_key(std::string configuration, const engine::Backend& backend) {
  const bool observes = backend.core_options().limits.kv_policy.selects_pages();
  return {kKvSubject, std::move(configuration),
          backend.numerics_id() + (observes ? kObservationVersion : "")};
}

}  // namespace pagoda::eval

// The key under which pagoda eval stores its verdicts.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "app/verdict_store.h"
#include "engine/backends/backend_options.h"

namespace pagoda::eval {

// Verdicts about configurations of the KV cache (app::VerdictKey::subject). The choice is the
// configuration's name, which says what layers are skipped; the numerics are
// engine::Backend::numerics_id().
inline constexpr const char* kKvSubject = "kv";

// Raised with every change of how attention is observed: rows stay the same, but which pages a KV
// policy drops may not.
inline constexpr const char* kObservationVersion = " observed.2";

// Returns the key of a configuration. `options` are those that make it so, `numerics` are those of
// any backend of the model and the device.
inline app::VerdictKey kv_verdict_key(std::string configuration, std::string numerics,
                                      const engine::BackendOptions& options) {
  if (options.kv_policy.selects_pages()) {
    numerics += kObservationVersion;
    // Whole blocks are dropped.
    if (options.block_tokens != engine::BackendOptions().block_tokens) {
      numerics += fmt::format(" blocks.{}", options.block_tokens);
    }
  }
  return {kKvSubject, std::move(configuration), std::move(numerics)};
}

}  // namespace pagoda::eval

// The KV configuration of a server under a KV policy, and what pagoda eval measured of it.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "app/served_source.h"
#include "app/verdict_store.h"
#include "base/result.h"
#include "engine/backends/backend.h"
#include "eval/measurement.h"
#include "kv/kv_policy.h"
#include "serve/serve_options.h"

namespace pagoda::serve {

// Names the KV format that is served, with a policy.
std::string kv_configuration(const ServeOptions& options, const engine::Backend& backend,
                             const kv::KvPolicy& policy);
app::VerdictKey kv_key(const ServeOptions& options, const engine::Backend& backend,
                       const kv::KvPolicy& policy);

// Does the quality gate have a say about this configuration?
bool is_gated(const ServeOptions& options, const app::ServedSource& source,
              const std::string& configuration);

// Takes the time of reading the model once, where nobody took it before; `stop` ends it.
Result<std::string> model_fingerprint(const app::ServedSource& source,
                                      const std::atomic<bool>& stop);

// `model` is its fingerprint.
std::optional<eval::Measurement> find_verdict(const std::string& model, const app::VerdictKey& key);

}  // namespace pagoda::serve

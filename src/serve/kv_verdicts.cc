#include "serve/kv_verdicts.h"

#include "app/cache_folder.h"
#include "app/kv_dtype.h"
#include "eval/kv_configuration.h"
#include "eval/quality_gate.h"
#include "eval/verdict_key.h"
#include "gguf/fingerprint.h"

namespace pagoda::serve {

std::string kv_configuration(const ServeOptions& options, const engine::Backend& backend,
                             const kv::KvPolicy& policy) {
  return eval::with_kv_policy(app::kv_choice_name(options.kv_cache_dtype, backend.page_layout()),
                              policy);
}

app::VerdictKey kv_key(const ServeOptions& options, const engine::Backend& backend,
                       const kv::KvPolicy& policy) {
  engine::BackendOptions kv;
  kv.kv_policy = policy;
  kv.block_tokens = options.block_size;
  return eval::kv_verdict_key(kv_configuration(options, backend, policy), backend.numerics_id(),
                              kv);
}

bool is_gated(const ServeOptions& options, const app::ServedSource& source,
              const std::string& configuration) {
  if (options.kv_quality_gate == eval::GateMode::kOff || configuration == eval::kBaselineName) {
    return false;
  }
  if (source.parts().empty()) return false;  // random weights: nothing to be measured
  return eval::is_below_baseline(configuration) || options.kv_quality_gate.has_value();
}

Result<std::string> model_fingerprint(const app::ServedSource& source,
                                      const std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(const gguf::Fingerprint found,
                   gguf::fingerprint(source.parts(),
                                     {.memory_path = app::cache_folder() + "/fingerprints"}, stop));
  return found.digest;
}

std::optional<eval::Measurement> find_verdict(const std::string& model,
                                              const app::VerdictKey& key) {
  return eval::find_measurement(app::VerdictStore::of_user(), model, key);
}

}  // namespace pagoda::serve

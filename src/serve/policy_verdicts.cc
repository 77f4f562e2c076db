#include "serve/policy_verdicts.h"

#include <fmt/format.h>

#include <utility>

#include "eval/quality_gate.h"
#include "serve/kv_verdicts.h"
#include "terminal/messages.h"

namespace pagoda::serve {

Result<std::unique_ptr<PolicyVerdicts>> PolicyVerdicts::create(const ServeOptions& options,
                                                               const app::ServedSource& source,
                                                               const engine::Backend& backend) {
  std::unique_ptr<PolicyVerdicts> made;
  if (options.kv_quality_gate == eval::GateMode::kOff || source.parts().empty()) return made;
  made.reset(new PolicyVerdicts(options, source, backend));
  if (options.kv_quality_gate == eval::GateMode::kRefuse) {
    ASSIGN_OR_RETURN(made->model_, model_fingerprint(source, made->stopping_));
  }
  return made;
}

PolicyVerdicts::~PolicyVerdicts() {
  stopping_ = true;
  if (finder_.joinable()) finder_.join();
}

server::PolicyQuality::Judgement PolicyVerdicts::judge(const kv::KvPolicy& policy) {
  const std::string configuration = kv_configuration(options_, backend_, policy);
  if (!is_gated(options_, source_, configuration)) return {.verdict = Verdict::kPasses};
  const std::lock_guard lock(mutex_);
  if (!model_) {
    if (!finder_.joinable()) finder_ = std::thread([this] { find_model(); });
    return {};
  }
  const Time now = std::chrono::steady_clock::now();
  Known* known = known_.find(configuration);
  if (known == nullptr) known = &known_.put(configuration, {});
  if (known->until <= now) *known = {look_up(policy, configuration), now + kKnownFor};
  return known->judgement;
}

server::PolicyQuality::Judgement PolicyVerdicts::look_up(const kv::KvPolicy& policy,
                                                         const std::string& configuration) const {
  const bool refuses = options_.kv_quality_gate == eval::GateMode::kRefuse;
  const auto measured = find_verdict(*model_, kv_key(options_, backend_, policy));
  if (!measured || !measured->has_verdict()) return {.is_refused = refuses};
  const std::string reason = eval::reason_against(*measured);
  if (reason.empty()) return {.verdict = Verdict::kPasses};
  return {.verdict = Verdict::kFails,
          .is_refused = refuses,
          .reason = fmt::format("KV {}: {}", configuration, reason)};
}

void PolicyVerdicts::find_model() {
  Result<std::string> found = model_fingerprint(source_, stopping_);
  if (found.ok()) {
    const std::lock_guard lock(mutex_);
    model_ = std::move(found).value();
  } else if (!stopping_) {
    terminal::print_warning(
        fmt::format("the quality of KV policies is unknown: {}", found.error().message));
  }
}

}  // namespace pagoda::serve

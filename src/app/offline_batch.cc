#include "app/offline_batch.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "engine/core.h"
#include "engine/finish_reason.h"

namespace pagoda::app {
namespace {

class OfflineSink final : public engine::ReplySink {
 public:
  void on_prompt_logprobs(std::span<const engine::TokenScore> scores) override {
    for (const engine::TokenScore& score : scores) {
      reply.prompt_logprobs.push_back(score.chosen.logprob);
    }
  }
  void on_token(std::uint32_t, const engine::OutputToken& chosen) override {
    if (!chosen.ends) reply.tokens.push_back(chosen.token);
  }
  void on_finish(std::uint32_t, engine::FinishReason reason, const engine::SequenceRecord&,
                 const std::string& text) override {
    finished = reason;
    message = text;
  }

  OfflineReply reply;
  std::optional<engine::FinishReason> finished;
  std::string message;
};

}  // namespace

Result<std::vector<OfflineReply>> run_offline(engine::Backend& backend,
                                              std::vector<engine::Request> requests,
                                              const Clock& clock, const OfflineHooks& hooks) {
  const engine::CoreOptions& options = backend.core_options();
  sched::TenantTable tenants;
  for (const engine::Request& request : requests) {
    RETURN_IF_ERROR(engine::check_request(request, options.limits, tenants[request.tenant].limits));
  }
  engine::Core core(options, backend.cache(), tenants, backend.runner(), clock);
  std::vector<std::shared_ptr<OfflineSink>> sinks;
  for (engine::Request& request : requests) {
    sinks.push_back(std::make_shared<OfflineSink>());
    core.submit(engine::RequestId(sinks.size()), std::move(request), sinks.back());
  }
  bool is_cancelled = false;
  while (core.step()) {
    if (hooks.on_tokens) hooks.on_tokens(core.counters().tokens_computed);
    if (is_cancelled || !hooks.cancelled || !hooks.cancelled()) continue;
    is_cancelled = true;
    for (std::size_t i = 1; i <= sinks.size(); ++i) core.cancel(engine::RequestId(i));
  }
  if (is_cancelled) return Error{ErrorCode::kExhausted, "interrupted"};
  std::vector<OfflineReply> replies;
  for (const auto& sink : sinks) {
    if (!sink->finished || !engine::ended_well(*sink->finished)) {
      return Error{ErrorCode::kIo,
                   sink->message.empty() ? "a sequence ended before its end" : sink->message};
    }
    replies.push_back(std::move(sink->reply));
  }
  return replies;
}

}  // namespace pagoda::app

#include "app/single_request.h"

#include <algorithm>
#include <memory>

#include "engine/core.h"
#include "engine/request.h"

namespace pagoda::app {
namespace {

class Listener final : public engine::ReplySink {
 public:
  explicit Listener(const engine::SingleRequest& request) : request_(request) {}

  void on_token(std::uint32_t, const engine::OutputToken& chosen) override {
    if (chosen.ends) return;
    output.tokens.push_back(chosen.token);
    if (request_.on_token) request_.on_token(chosen.token);
  }
  void on_finish(std::uint32_t, engine::FinishReason reason, const engine::SequenceRecord& record,
                 const std::string& text) override {
    output.reason = reason;
    output.tokens_computed = record.prompt_tokens_computed + record.output_tokens;
    output.drafts = record.drafts;
    if (record.first_token_ns != 0) {
      output.first_token_s = record.first_token_s();
      output.decode_s = seconds_between(record.first_token_ns, record.finished_ns);
    }
    message = text;
  }

  EngineOutput output;
  std::string message;

 private:
  const engine::SingleRequest& request_;
};

}  // namespace

Result<EngineOutput> generate_on(engine::Backend& backend, const engine::SingleRequest& request,
                                 const Clock& clock) {
  const engine::CoreOptions& options = backend.core_options();
  sched::TenantTable tenants;
  engine::Request asked;
  asked.prompt = request.prompt;
  asked.sampling = request.sampling;
  // Where the context ends first, it ends the sequence.
  const std::uint64_t context = engine::context_under(options.limits.kv_policy, options.limits);
  if (request.prompt.size() + request.tokens_max <= context) {
    asked.end.max_tokens = request.tokens_max;
  }
  RETURN_IF_ERROR(engine::check_request(asked, options.limits, tenants[asked.tenant].limits));
  engine::Core core(options, backend.cache(), tenants, backend.runner(), clock);
  const auto listener = std::make_shared<Listener>(request);
  const engine::RequestId id(1);
  core.submit(id, std::move(asked), listener);
  while (core.step()) {
    if (request.cancelled && request.cancelled()) core.cancel(id);
  }
  const engine::FinishReason reason = listener->output.reason;
  if (reason == engine::FinishReason::kError || reason == engine::FinishReason::kLost ||
      reason == engine::FinishReason::kNoToken) {
    return Error{ErrorCode::kIo, listener->message};
  }
  return std::move(listener->output);
}

}  // namespace pagoda::app

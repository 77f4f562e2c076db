#include "cli/run_machine.h"

#include <algorithm>
#include <memory>

#include "engine/core.h"
#include "engine/request.h"

namespace pagoda::cli {
namespace {

class Listener final : public engine::ReplySink {
 public:
  explicit Listener(const engine::SoloRequest& request) : request_(request) {}

  void on_token(std::uint32_t, const engine::ChosenToken& chosen) override {
    if (chosen.ends) return;
    answer.tokens.push_back(chosen.token);
    if (request_.on_token) request_.on_token(chosen.token);
  }
  void on_finish(std::uint32_t, engine::FinishReason reason, const engine::AnswerRecord& record,
                 const std::string& text) override {
    answer.reason = reason;
    answer.rows_computed = record.prompt_tokens_computed + record.answer_tokens;
    if (record.first_token_ns != 0) {
      answer.first_token_s = record.first_token_s();
      answer.decode_s = seconds_between(record.first_token_ns, record.finished_ns);
    }
    message = text;
  }

  engine::SoloAnswer answer;
  std::string message;

 private:
  const engine::SoloRequest& request_;
};

}  // namespace

Result<engine::SoloAnswer> answer_on(engine::Machine& machine, const engine::SoloRequest& request,
                                     const Clock& clock) {
  const engine::CoreOptions& options = machine.core_options();
  sched::TenantTable tenants;
  engine::Request asked;
  asked.prompt = request.prompt;
  asked.sampling = request.sampling;
  // Where the context ends first, it ends the answer.
  if (request.prompt.size() + request.tokens_max <= options.limits.context_tokens) {
    asked.end.max_tokens = request.tokens_max;
  }
  RETURN_IF_ERROR(engine::check_request(asked, options.limits, tenants[asked.tenant].limits));
  engine::Core core(options, machine.cache(), tenants, machine.runner(), clock);
  const auto listener = std::make_shared<Listener>(request);
  const engine::RequestId id(1);
  core.submit(id, std::move(asked), listener);
  while (core.step()) {
    if (request.cancelled && request.cancelled()) core.cancel(id);
  }
  const engine::FinishReason reason = listener->answer.reason;
  if (reason == engine::FinishReason::kError || reason == engine::FinishReason::kLost) {
    return Error{ErrorCode::kIo, listener->message};
  }
  return std::move(listener->answer);
}

}  // namespace pagoda::cli

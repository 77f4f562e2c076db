#include "server/completion_route.h"

#include <utility>

#include "server/api/caller_fields.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

// Takes the fingerprint out of a request, completes it, and compares it with the earlier one that
// the client names. Our own explanation then stands beside the diagnosis.
std::optional<RequestFingerprint> diagnosed(CompletionRequest& asked, const ServerState& state) {
  std::optional<RequestFingerprint> now = std::exchange(asked.fingerprint, std::nullopt);
  if (now) {
    now->salt = asked.engine.cache_salt;
    now->session = asked.engine.session;
  }
  const DiagnosticsField& field = asked.cache.diagnostics;
  if (!field.is_asked() || asked.engine.explain_only) return now;
  std::optional<RequestFingerprint> before;
  if (field.earlier_id) {
    before = state.fingerprints().find(asked.engine.tenant, *field.earlier_id,
                                       state.model().engine.now_ns());
  }
  asked.cache.diagnosis = diagnose(field, before, now);
  asked.engine.explain = true;
  return now;
}

}  // namespace

ReadingMemory reading_memory(const HttpRequest& request, const ServerState& state) {
  return ReadingMemory(request.may_take_long ? &state.request_memory() : nullptr, &state.stops());
}

Json read_body(const HttpRequest& request, const ServedModel& model, ReadingMemory& memory) {
  if (request.body.empty()) throw ApiError(400, "the body is empty, expected a JSON object");
  Json body = parse_json(request.body, &memory);
  if (const auto name = Fields(body).text("model")) check_model_name(*name, model);
  return body;
}

// The request's memory is counted before its choices are made.
std::unique_ptr<Completion> complete(CompletionRequest asked, const HttpRequest& request,
                                     const ServerState& state) {
  bind_to_caller(asked, request.caller);
  if (asked.engine.session.empty()) set_session(request.session, asked);
  std::optional<RequestFingerprint> fingerprint = diagnosed(asked, state);
  asked.memory = ByteBudget::Hold(state.request_memory());
  if (!asked.memory.resize(asked.memory_bytes)) {
    throw out_of_request_memory(state.request_memory(), asked.memory_bytes);
  }
  const engine::TenantId tenant = asked.engine.tenant;
  auto completion =
      std::make_unique<Completion>(state.model(), std::move(asked), state.option_name());
  if (fingerprint) {
    state.fingerprints().add(tenant, completion->id(), *std::move(fingerprint),
                             state.model().engine.now_ns());
  }
  return completion;
}

}  // namespace pagoda::server

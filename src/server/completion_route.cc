#include "server/completion_route.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "server/api/caller_fields.h"
#include "server/api/ollama/ollama_reply.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

// Takes the fingerprint out of a request, completes it, and compares it with the earlier one that
// the client names. Our own explanation stands beside a miss.
std::optional<RequestFingerprint> diagnosed(CompletionRequest& asked, const ServerState& state) {
  std::optional<RequestFingerprint> now = std::exchange(asked.fingerprint, std::nullopt);
  if (now) {
    now->salt = asked.engine.cache_salt;
    now->session = asked.engine.session;
  }
  if (asked.engine.explain_only) return std::nullopt;
  const DiagnosticsField& field = asked.cache.diagnostics;
  if (field.is_asked()) {
    std::optional<RequestFingerprint> before;
    if (field.earlier_id) {
      before = state.fingerprints().find(asked.engine.tenant, *field.earlier_id,
                                         state.model().engine.now_ns());
    }
    Diagnosis diagnosis = diagnose(field, before, now);
    asked.cache.diagnosis = std::move(diagnosis.members);
    asked.cache.explains_miss = diagnosis.is_miss && !asked.engine.explain;
    asked.engine.explain = asked.engine.explain || diagnosis.is_miss;
  }
  if (now) now->thin_out();
  return now;
}

// Where a client's text is one that it has sent before, the cache would have had what lies behind
// it in any case: normalising saved nothing.
void count_saved(CompletionRequest& asked, const ServerState& state) {
  Prompt& prompt = asked.prompts.front();
  const bool computes =
      !asked.engine.explain_only && asked.engine.action == engine::CacheAction::kNone;
  if (prompt.normalised.empty() || !computes) return;
  std::string replaced = asked.engine.cache_salt;
  for (const NormalisedText& text : prompt.normalised) replaced += '\n' + text.replaced;
  if (!state.normalised_texts().add(replaced)) prompt.normalised_upto = prompt.tokens.size();
}

// The server that goes on with the prompt answers: what this one draws is its first token alone.
void set_transfer(CompletionRequest& asked, const HttpRequest& request, const ServedModel& model) {
  if (!request.cache_source.empty()) {
    asked.transfer.origins = {read_cache_source(request.cache_source)};
  }
  settle_transfer(asked.transfer, model.disaggregation, model.allows_source);
  if (!asked.transfer.hands_over || asked.engine.explain_only) return;
  asked.engine.hands_over = true;
  asked.engine.end.max_tokens = 1;
  asked.engine.end.min_tokens = std::min<std::uint32_t>(asked.engine.end.min_tokens, 1);
}

}  // namespace

ReadingMemory reading_memory(const HttpRequest& request, const ServerState& state) {
  return ReadingMemory(request.may_take_long ? &state.request_memory() : nullptr, &state.stops());
}

ReadingTerms reading_terms(const HttpRequest& request, const ServerState& state,
                           ReadingMemory& memory) {
  return {.memory = memory,
          .may_take_long = request.may_take_long,
          .context_tokens = request.caller.context_tokens,
          .output_tokens = request.caller.output_tokens,
          .option_name = &state.option_name()};
}

Json read_body(const HttpRequest& request, const ServedModel& model, ReadingMemory& memory) {
  if (request.body.empty()) throw ApiError(400, "the body is empty, expected a JSON object");
  Json body = parse_json(request.body, &memory);
  const bool is_ollama = request.path.starts_with("/api/");
  auto name = Fields(body).text("model");
  if (!name && is_ollama) name = Fields(body).text("name");  // as it was called before
  if (name) check_model_name(is_ollama ? ollama::without_latest(*name, model) : *name, model);
  return body;
}

// The request's memory is counted before its choices are made.
std::unique_ptr<Completion> complete(CompletionRequest asked, const HttpRequest& request,
                                     const ServerState& state) {
  bind_to_caller(asked, request.caller);
  if (asked.engine.session.empty()) set_session(request.session, asked);
  set_transfer(asked, request, state.model());
  std::optional<RequestFingerprint> fingerprint = diagnosed(asked, state);
  count_saved(asked, state);
  asked.memory = ByteBudget::Hold(state.request_memory());
  if (!asked.memory.resize(asked.memory_bytes)) {
    throw out_of_request_memory(state.request_memory(), asked.memory_bytes);
  }
  const engine::TenantId tenant = asked.engine.tenant;
  auto completion =
      std::make_unique<Completion>(state.model(), std::move(asked), state.option_name());
  if (fingerprint) {
    completion->when_answered(
        [&state, tenant, id = completion->id(), kept = *std::move(fingerprint)]() mutable {
          state.fingerprints().add(tenant, std::move(id), std::move(kept),
                                   state.model().engine.now_ns());
        });
  }
  return completion;
}

HeaderList completion_headers(const Completion& completion) {
  const std::vector<std::string>& ignored = completion.ignored_fields();
  if (ignored.empty()) return {};
  return {{"X-Ignored-Fields", fmt::format("{}", fmt::join(ignored, ","))}};
}

}  // namespace pagoda::server

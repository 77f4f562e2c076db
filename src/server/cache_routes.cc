#include "server/cache_routes.h"

#include <fmt/format.h>

#include <utility>

#include "server/api/any_completion.h"
#include "server/api/endpoints.h"
#include "server/api_error.h"
#include "server/completion_route.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

// A body names a session by a member or the header, as completions do, and has no prompt.
bool names_session(const Json& body, const HttpRequest& request) {
  const Fields fields(body);
  const auto has = [&](const char* name) { return fields.find(name) != nullptr; };
  if (has("messages") || has("prompt") || has("input")) return false;
  return has("session") || has("session_id") || has("prompt_cache_key") || !request.session.empty();
}

// The memory of reading is given back before complete() counts what stays.
Routed act_on_cache(const HttpRequest& request, const ServerState& state,
                    engine::CacheAction action) {
  std::unique_ptr<DeferredReply> ended;  // where a session is demoted, which ends it
  const auto read = [&]() -> CompletionRequest {
    const ServedModel& model = state.model();
    ReadingMemory memory = reading_memory(request, state);
    Json body = read_body(request, model, memory);
    if (names_session(body, request)) {
      if (action == engine::CacheAction::kPrefetch) {
        return read_session_prompt(body, model, request);
      }
      ended = end_session(body, model, request);
      return {};
    }
    return read_any_completion(std::move(body), !request.anthropic_version.empty(), model,
                               reading_terms(request, state, memory));
  };
  CompletionRequest asked = read();
  if (ended) return ended;
  if (asked.prompts.size() != 1) throw ApiError(400, "prompt: expected one", "prompt");
  asked.engine.action = action;
  asked.engine.sampling.n = 1;
  asked.output.stream = false;
  asked.fingerprint.reset();
  return complete(std::move(asked), request, state);
}

// Each prompt is looked up on the engine's thread.
constexpr std::size_t kExplainedPromptsMax = 64;

// Reports what a completion of the same body would find in the cache, and with `estimates` when its
// first token would come. Computes nothing.
Routed explain(const HttpRequest& request, const ServerState& state, bool estimates) {
  const auto read = [&] {
    const ServedModel& model = state.model();
    ReadingMemory memory = reading_memory(request, state);
    return read_any_completion(read_body(request, model, memory),
                               !request.anthropic_version.empty(), model,
                               reading_terms(request, state, memory));
  };
  CompletionRequest asked = read();
  if (asked.prompts.size() > kExplainedPromptsMax) {
    throw ApiError(400,
                   fmt::format("prompt: has {} prompts, at most {} are explained at once",
                               asked.prompts.size(), kExplainedPromptsMax),
                   "prompt");
  }
  asked.engine.explain = asked.engine.explain_only = true;
  asked.output.estimate = estimates;
  asked.engine.sampling.n = 1;
  asked.output.stream = false;
  return complete(std::move(asked), request, state);
}

}  // namespace

Routed explain_cache(const HttpRequest& request, const ServerState& state) {
  return explain(request, state, false);
}

Routed estimate_turn(const HttpRequest& request, const ServerState& state) {
  return explain(request, state, true);
}

Routed prefetch(const HttpRequest& request, const ServerState& state) {
  return act_on_cache(request, state, engine::CacheAction::kPrefetch);
}

Routed demote(const HttpRequest& request, const ServerState& state) {
  return act_on_cache(request, state, engine::CacheAction::kDemote);
}

Routed close_session(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  ReadingMemory memory = reading_memory(request, state);
  return end_session(read_body(request, model, memory), model, request);
}

}  // namespace pagoda::server

// POST /cache/session/close, /cache/demote and /cache/prefetch of {"session": "key", "cache_salt":
// "..."}.
#include <fmt/format.h>

#include "server/api/caller_fields.h"
#include "server/api/completion_fields.h"
#include "server/api/endpoints.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

// The key that the client gave to the session, under any of its names. Throws ApiError.
std::string_view read_key(const Fields& fields, const HttpRequest& request) {
  std::string_view key = request.session;
  for (const char* const name : {"session_id", "prompt_cache_key", "session"}) {
    if (const auto given = fields.text(name)) key = *given;
  }
  if (key.empty()) fields.require("session");
  return key;
}

engine::SessionName read_name(const Fields& fields, const HttpRequest& request) {
  return {.tenant = request.caller.tenant,
          .cache_salt = request.caller.salt(read_salt(fields)),
          .session = session_key(read_key(fields, request))};
}

HttpReply tell_closed(const std::string& key, const Result<std::uint64_t>& blocks) {
  if (blocks.ok())
    return json_reply({{"session", key}, {"closed", true}, {"blocks", blocks.value()}});
  if (blocks.error().code != ErrorCode::kNotFound) {
    return error_reply(ApiError(400, blocks.error().message));
  }
  return error_reply(
      ApiError(404, fmt::format("session: \"{}\" is not open", key), "session", "not_found"));
}

}  // namespace

CompletionRequest read_session_prompt(const Json& body, const ServedModel& model,
                                      const HttpRequest& request) {
  const Fields fields(body);
  const engine::SessionName name = read_name(fields, request);
  const auto last = model.engine.session_prompt(name);
  if (!last) {
    throw ApiError(404, "session: none of this name is remembered", "session", "not_found");
  }
  CompletionRequest asked;
  asked.engine.cache_salt = read_salt(fields);
  asked.engine.kv_policy = last->kv_policy;
  asked.engine.session = name.session;
  asked.engine.public_tokens = last->public_tokens;
  asked.engine.end.max_tokens = 1;
  asked.memory_bytes = last->tokens.size() * sizeof(TokenId);
  Prompt prompt;
  prompt.tokens = last->tokens;
  prompt.sources.assign(prompt.tokens.size(), text::Source::kUser);
  prompt.first_turn_tokens = last->first_turn_tokens;
  asked.prompts.push_back(std::move(prompt));
  return asked;
}

std::unique_ptr<DeferredReply> end_session(const Json& body, const ServedModel& model,
                                           const HttpRequest& request) {
  const Fields fields(body);
  constexpr std::size_t kShownBytesMax = 256;
  const std::string key(read_key(fields, request).substr(0, kShownBytesMax));
  return std::make_unique<DeferredReply>(
      [&served = model.engine, key,
       name = read_name(fields, request)](const DeferredReply::Give& give) {
        served.close_session(name, [key, give](const Result<std::uint64_t>& blocks) {
          give([key, blocks] { return tell_closed(key, blocks); });
        });
      });
}

}  // namespace pagoda::server

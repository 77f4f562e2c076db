// POST /cache/session/close, /cache/demote and /cache/prefetch of {"session": "key", "cache_salt":
// "..."}.
#include <fmt/format.h>

#include "server/api/caller_fields.h"
#include "server/api/endpoints.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

HttpReply tell_closed(const std::string& key, std::optional<std::uint64_t> blocks) {
  if (!blocks) {
    return error_reply(
        ApiError(404, fmt::format("session: \"{}\" is not open", key), "session", "not_found"));
  }
  return json_reply({{"session", key}, {"closed", true}, {"blocks", *blocks}});
}

}  // namespace

CompletionRequest read_session_prompt(const Json& body, const ServedModel& model,
                                      const HttpRequest& request) {
  const Fields fields(body);
  const std::string key = session_key(fields.required_text("session"));
  const std::string salt(fields.text("cache_salt").value_or(""));
  auto tokens = model.engine.session_prompt(request.caller.salt(salt), key);
  if (!tokens) {
    throw ApiError(404, "session: none of this name is remembered", "session", "not_found");
  }
  CompletionRequest asked;
  asked.engine.cache_salt = salt;
  asked.engine.session = key;
  asked.engine.end.max_tokens = 1;
  Prompt prompt;
  prompt.sources.assign(tokens->size(), text::Source::kUser);
  prompt.first_turn_tokens = tokens->size();  // it goes on with nothing: nothing is superseded
  asked.memory_bytes = tokens->size() * sizeof(TokenId);
  prompt.tokens = *std::move(tokens);
  asked.prompts.push_back(std::move(prompt));
  return asked;
}

std::unique_ptr<DeferredReply> end_session(const Json& body, const ServedModel& model,
                                           const HttpRequest& request) {
  const Fields fields(body);
  std::string_view key = request.session;
  for (const char* const name : {"session_id", "prompt_cache_key", "session"}) {
    if (const auto given = fields.text(name)) key = *given;
  }
  if (key.empty()) fields.require("session");
  const std::string salt = request.caller.salt(fields.text("cache_salt").value_or(""));
  return std::make_unique<DeferredReply>([&served = model.engine, tenant = request.caller.tenant,
                                          salt, key = std::string(key.substr(0, 256)),
                                          session =
                                              session_key(key)](const DeferredReply::Give& give) {
    served.close_session(tenant, salt, session, [key, give](std::optional<std::uint64_t> blocks) {
      give([key, blocks] { return tell_closed(key, blocks); });
    });
  });
}

}  // namespace pagoda::server

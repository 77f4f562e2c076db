#include "server/api/translated_chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "server/api/completion_fields.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::array kShared = {"temperature",
                                "top_p",
                                "top_k",
                                "min_p",
                                "seed",
                                "repetition_penalty",
                                "presence_penalty",
                                "logit_bias",
                                "frequency_penalty",
                                "min_tokens",
                                "ignore_eos",
                                "stop_token_ids",
                                "priority",
                                "cache_salt",
                                "cache_public_upto",
                                "cache_control",
                                "cache_explain",
                                "prompt_cache_key",
                                "prompt_cache_options",
                                "prompt_cache_retention",
                                "retain",
                                "kv_policy",
                                "speculative",
                                "speculative.n_max",
                                "prediction",
                                "diagnostics",
                                "stream",
                                "user",
                                "chat_template_kwargs",
                                "enable_thinking",
                                "truncation",
                                "truncate_prompt_tokens"};

// Messages begin with the field, whose path may go on behind its name.
bool names_field(std::string_view text, std::string_view field) {
  if (!text.starts_with(field)) return false;
  const std::string_view rest = text.substr(field.size());
  return rest.empty() || rest.front() == '.' || rest.front() == '[' || rest.front() == ':';
}

ApiError renamed(const ApiError& given, const OwnPaths& paths, std::span<const FieldName> names) {
  const ApiError error = {given.status, paths.rename(given.message), paths.rename(given.param),
                          given.code};
  const auto found = std::find_if(names.begin(), names.end(), [&](const FieldName& name) {
    return names_field(error.param, name.chat);
  });
  if (found == names.end()) return error;
  const auto rename = [&](std::string text) {
    if (names_field(text, found->chat)) text.replace(0, found->chat.size(), found->own);
    return text;
  };
  return {error.status, rename(error.message), rename(error.param), error.code};
}

// Names dropped messages by the paths of the body that the client sent.
void rename_dropped(const OwnPaths& paths, CompletionRequest& request) {
  std::optional<PromptTruncation>& truncated = request.prompts.front().truncated;
  if (!truncated) return;
  for (PromptTruncation::Run& run : truncated->dropped) {
    run.from = paths.first_of(run.first);
    run.to = paths.last_of(run.last);
  }
}

}  // namespace

void move_shared_fields(Json& from, Json& chat) {
  for (const char* const name : kShared) {
    const auto found = from.find(name);
    if (found != from.end() && !found->is_null()) chat[name] = std::move(*found);
  }
}

CompletionRequest read_translated(TranslatedChat chat, const ServedModel& model,
                                  const ReadingTerms& terms) {
  try {
    ReadingTerms own = terms;
    own.output_wanted = chat.tokens_max;
    CompletionRequest request = read_chat_request(std::move(chat.body), model, own);
    rename_dropped(chat.paths, request);
    if (chat.tokens_max == 0u) answer_nothing(request);
    if (chat.tokens_max.value_or(0) > 0 && !request.output.prompt_only) {
      const std::uint64_t tokens = request.prompts.front().tokens.size();
      const std::uint64_t context = terms.context_of(model, request.engine);
      // The engine refuses a prompt that leaves no room.
      std::uint64_t room = tokens < context ? context - tokens : 1;
      if (chat.takes_what_fits && terms.output_tokens > 0) {
        room = std::min(room, terms.output_tokens);
      }
      request.engine.end.max_tokens =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(*chat.tokens_max, room));
    }
    return request;
  } catch (const ApiError& error) {
    throw renamed(error, chat.paths, chat.names);
  }
}

std::uint64_t count_translated(TranslatedChat chat, const ServedModel& model,
                               const ReadingTerms& terms) {
  const std::uint64_t most = counted_tokens_max(model);
  try {
    const auto prompt = read_chat_prompt(chat.body, model, terms, {.room = {most, most}});
    if (prompt) return prompt->tokens.ids.size();
    refuse_beyond(most, "messages", model);
  } catch (const ApiError& error) {
    throw renamed(error, chat.paths, chat.names);
  }
}

}  // namespace pagoda::server

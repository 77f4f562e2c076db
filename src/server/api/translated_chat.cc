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

// These stand for the prompt, or for the length of the answer, which every API has by names of its
// own.
constexpr std::array<std::string_view, 5> kOfChats = {"messages", "prompt", "input", "max_tokens",
                                                      "max_completion_tokens"};
// Replies of other APIs have no place for what these ask for.
constexpr std::array<std::string_view, 7> kNotInReplies = {
    "n", "best_of", "logprobs", "top_logprobs", "prompt_logprobs", "echo", "return_token_ids"};

template <class Names>
bool has_name(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void refuse_unless_idle(std::string_view name, const Json& value) {
  const bool is_count = name == "n" || name == "best_of";
  const bool is_idle = value == false || value == 0 || (is_count && value == 1);
  if (is_idle) return;
  throw ApiError(400, fmt::format("{}: is not supported here; /v1/chat/completions has it", name),
                 std::string(name), "unsupported_parameter");
}

ApiError renamed(const ApiError& given, const TranslatedChat& chat) {
  ApiError error = {given.status, chat.paths.rename(given.message), chat.paths.rename(given.param),
                    given.code};
  error = renamed(error, chat.names);
  const bool is_long =
      given.code == "context_length_exceeded" && names_field(given.param, "messages");
  if (is_long) error.message = std::string(chat.too_long) + error.message;
  return error;
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

void TranslatedChat::write(std::string_view name, std::string_view own, Json value) {
  if (body.contains(std::string(name))) {
    const auto before = std::find_if(names.begin(), names.end(),
                                     [&](const FieldName& one) { return one.chat == name; });
    const std::string_view other = before == names.end() ? name : before->own;
    throw ApiError(400, fmt::format("{}: and {} exclude each other", own, other), own);
  }
  names.push_back({name, own});
  body[std::string(name)] = std::move(value);
}

void move_other_fields(Json& from, std::span<const std::string_view> own, Json& chat) {
  Json::object_t::Container& fields = chat.get_ref<Json::object_t&>();
  for (auto& [name, value] : from.get_ref<Json::object_t&>()) {
    if (value.is_null() || has_name(own, name)) continue;
    if (has_name(kNotInReplies, name)) {
      refuse_unless_idle(name, value);
    } else if (has_name(kOfChats, name)) {
      throw ApiError(400, fmt::format("{}: is no field of this API", name), name,
                     "unsupported_parameter");
    } else {
      // To the end: an insertion would compare each with all before it.
      fields.emplace_back(name, std::move(value));
    }
  }
}

CompletionRequest read_translated(TranslatedChat chat, const ServedModel& model,
                                  const ReadingTerms& terms) {
  try {
    ReadingTerms own = terms;
    own.output_wanted = chat.tokens_max;
    CompletionRequest request = read_chat_request(std::move(chat.body), model, own);
    rename_dropped(chat.paths, request);
    request.ignored.insert(request.ignored.end(), chat.ignored.begin(), chat.ignored.end());
    request.memory_bytes += chat.paths.bytes();
    request.prompts.front().paths = std::move(chat.paths);
    request.names.insert(request.names.begin(), chat.names.begin(), chat.names.end());
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
    throw renamed(error, chat);
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
    throw renamed(error, chat);
  }
}

}  // namespace pagoda::server

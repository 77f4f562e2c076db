#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "server/api/answer_grammar.h"
#include "server/api/chat_prompt.h"
#include "server/api/completion_fields.h"
#include "server/api/kv_policy_fields.h"
#include "server/api/request_memory.h"
#include "server/api/speculation_fields.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

OutputLength read_length(const Fields& fields) {
  OutputLength length;
  for (const char* const name : {"max_completion_tokens", "max_tokens"}) {
    const auto tokens = fields.integer(name, 0, INT32_MAX);
    if (tokens && !length.tokens) length = {static_cast<std::uint32_t>(*tokens), name};
  }
  return length;
}

void read_logprobs(const Fields& fields, OutputOptions& output) {
  const auto top = fields.integer("top_logprobs", 0, kLogprobsMax);
  if (fields.boolean("logprobs").value_or(false)) {
    output.logprobs = static_cast<std::uint32_t>(top.value_or(0));
  } else if (top.value_or(0) > 0) {
    throw ApiError(400, "top_logprobs: makes sense with \"logprobs\": true only", "top_logprobs");
  }
}

// Conversations that share no more than a system prompt and a question are different ones. The
// first turn goes up to the message behind the question, so that what the template writes between
// them belongs to it; where there is no such message, the whole prompt is the first turn.
std::uint64_t first_turn_of(std::span<const text::Origin> origins) {
  constexpr std::uint32_t kNoMessage = text::Origin::kNoMessage;
  const auto question = std::find_if(origins.begin(), origins.end(), [](const auto& origin) {
    return origin.source == text::Source::kUser && origin.message != kNoMessage;
  });
  const auto next = std::find_if(question, origins.end(), [&](const text::Origin& origin) {
    return origin.message != kNoMessage && origin.message != question->message;
  });
  return static_cast<std::uint64_t>(next - origins.begin());
}

// The tokens before what was put in are what the cache would have had anyway.
std::uint64_t normalised_upto(const Prompt& prompt) {
  if (prompt.normalised.empty()) return 0;
  const std::string& line = prompt.normalised.front().served;
  const std::size_t at = prompt.rendered.bytes().find(line);
  if (at == std::string_view::npos) return prompt.tokens.size();  // the template left it out
  const auto behind =
      std::lower_bound(prompt.begins.begin(), prompt.begins.end(), at + line.size());
  return static_cast<std::uint64_t>(behind - prompt.begins.begin());
}

Prompt to_prompt(ChatPrompt chat) {
  Prompt prompt;
  text::PromptTokens& tokens = chat.tokens;
  prompt.sources.reserve(tokens.origins.size());
  for (const text::Origin& origin : tokens.origins) prompt.sources.push_back(origin.source);
  prompt.first_turn_tokens = first_turn_of(tokens.origins);
  prompt.tokens = std::move(tokens.ids);
  prompt.begins = std::move(tokens.begins);
  prompt.rendered = std::move(chat.text);
  prompt.normalised = std::move(chat.normalised);
  prompt.normalised_upto = normalised_upto(prompt);
  prompt.truncated = std::move(chat.truncated);
  prompt.messages_added = static_cast<std::uint32_t>(chat.messages_added);
  return prompt;
}

PromptLimits prompt_limits(const Truncation& truncation, const OutputLength& length,
                           const ServedModel& model, const ReadingTerms& terms,
                           const engine::Request& request) {
  const std::uint64_t context = terms.context_of(model, request);
  if (truncation.last_tokens) return {.room = {0, counted_tokens_max(model)}};
  // An output that exceeds the context is refused, and no shorter prompt would help.
  const bool is_of_use = length.tokens.value_or(0) < context;
  if (truncation.type == TruncationType::kNone || !is_of_use) {
    return {.room = {0, model.context_tokens(request) - 1}};
  }
  const bool gives_way = !length.tokens;
  return {.room = prompt_room(context, gives_way ? terms.output_wanted : length.tokens, gives_way),
          .truncation = truncation.type};
}

// A template that does not name `documents` cannot show them. An empty list asks for nothing.
void note_ignored_documents(const Fields& fields, const ServedModel& model,
                            CompletionRequest& request) {
  const Json* const documents = fields.array("documents");
  if (documents == nullptr || documents->empty() || !model.chat_template) return;
  const bool shows = model.chat_template->source().find("documents") != std::string_view::npos;
  if (!shows) request.ignored.emplace_back("documents");
}

[[noreturn]] void refuse_long_chat(const PromptLimits& limits, const ServedModel& model,
                                   const ReadingTerms& terms) {
  if (limits.truncation == TruncationType::kNone) {
    refuse_beyond(limits.room.most, "messages", model, terms.context_tokens);
  }
  throw ApiError(400,
                 fmt::format("messages: what truncation keeps (system messages, tools, the last "
                             "turn{}) has more than {} tokens",
                             limits.truncation == TruncationType::kMiddle ? " and the first" : "",
                             limits.room.most),
                 "messages", "context_length_exceeded");
}

// Keeps the last `count` tokens of the prompt and moves the positions that the request has in it.
void keep_last_tokens(std::uint64_t count, CompletionRequest& request) {
  Prompt& prompt = request.prompts.front();
  if (prompt.tokens.size() <= count) return;
  const std::uint64_t dropped = prompt.tokens.size() - count;
  // A copy: what a vector has room for is not counted as the request's.
  const auto drop = [&](auto& values) {
    values = {values.begin() + static_cast<std::ptrdiff_t>(dropped), values.end()};
  };
  const auto move_back = [&](std::uint64_t& place) { place -= std::min(place, dropped); };
  drop(prompt.tokens);
  drop(prompt.sources);
  drop(prompt.begins);
  move_back(prompt.first_turn_tokens);
  move_back(prompt.normalised_upto);
  for (CacheMark& mark : request.cache.marks) move_back(mark.tokens);
  request.fingerprint.reset();  // its pieces are of the whole
  prompt.truncated =
      PromptTruncation{.type = "tokens", .limit_tokens = count, .dropped_tokens = dropped};
}

}  // namespace

CompletionRequest read_chat_request(Json body, const ServedModel& model,
                                    const ReadingTerms& terms) {
  const Fields fields(body);
  CompletionRequest request;
  request.is_chat = true;
  request.names = {{"prompt", "messages"}};
  request.ignored = ignored_fields(body);
  note_ignored_documents(fields, model, request);
  request.engine.sampling = model.sampling_defaults;
  read_shared_fields(fields, engine::sequences_max(model.engine.limits()), request,
                     terms.option_name);
  judge_kv_policy(fields, model, request);
  read_speculation(fields, model, request);
  AnswerGrammar grammar(fields, model, terms);
  grammar.read_tools(fields);
  if (fields.boolean("echo").value_or(false)) {
    throw ApiError(400, "echo: is not supported in a chat", "echo", "unsupported_parameter");
  }
  read_logprobs(fields, request.output);
  const OutputLength length = read_length(fields);
  request.engine.end.max_tokens = length.tokens;
  request.engine.sampling.logprobs = request.output.logprobs;
  request.engine.sampling.prompt_logprobs = request.output.prompt_logprobs;
  check_choices(request, model);
  RequestMemory memory(request, 1, "n");
  const Truncation truncation = read_truncation(fields);
  const PromptLimits limits = prompt_limits(truncation, length, model, terms, request.engine);
  auto chat = read_chat_prompt(body, model, terms, limits);
  if (!chat) refuse_long_chat(limits, model, terms);
  if (chat->answer) {
    grammar.set_reading(*chat->answer);
    request.answer = std::make_shared<const AnswerTerms>(*std::move(chat->answer));
  }
  memory.add_answer();
  grammar.finish(request.answer.get(), request);
  memory.add_constraint();
  request.fingerprint = std::move(chat->fingerprint);
  request.cache.marks = std::move(chat->marks);
  request.cache.marks_dropped = chat->marks_dropped;
  request.prompts.push_back(to_prompt(*std::move(chat)));
  if (truncation.last_tokens) {
    keep_last_tokens(
        tokens_to_keep(*truncation.last_tokens, terms.context_of(model, request.engine), length),
        request);
  }
  memory.add(request.prompts.back());
  request.memory_bytes = memory.bytes();
  request.matcher_bytes = memory.matcher_bytes();
  check_lengths(request, model, "messages", length, terms.context_tokens);
  if (length.tokens == 0u || request.cache.prewarm) answer_nothing(request);
  return request;
}

}  // namespace pagoda::server

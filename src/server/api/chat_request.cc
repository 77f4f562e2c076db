#include "server/api/answer_grammar.h"
#include "server/api/chat_prompt.h"
#include "server/api/completion_fields.h"
#include "server/api/request_memory.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

OutputLength read_length(const Fields& fields) {
  OutputLength length;
  for (const char* const name : {"max_completion_tokens", "max_tokens"}) {
    const auto tokens = fields.integer(name, 1, INT32_MAX);
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

Prompt to_prompt(ChatPrompt chat) {
  Prompt prompt;
  text::PromptTokens& tokens = chat.tokens;
  prompt.sources.reserve(tokens.origins.size());
  for (const text::Origin& origin : tokens.origins) prompt.sources.push_back(origin.source);
  prompt.tokens = std::move(tokens.ids);
  prompt.begins = std::move(tokens.begins);
  prompt.rendered = std::move(chat.text);
  return prompt;
}

}  // namespace

CompletionRequest read_chat_request(Json body, const ServedModel& model,
                                    const ReadingTerms& terms) {
  const Fields fields(body);
  CompletionRequest request;
  request.is_chat = true;
  request.engine.sampling = model.sampling_defaults;
  read_shared_fields(fields, engine::sequences_max(model.engine.limits()), request);
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
  auto chat = read_chat_prompt(body, model, terms, model.context_tokens() - 1);
  if (!chat) refuse_long_prompt("messages", model.context_tokens());
  if (chat->answer) {
    grammar.set_reading(*chat->answer);
    request.answer = std::make_shared<const AnswerTerms>(*std::move(chat->answer));
  }
  memory.add_answer();
  grammar.finish(request.answer.get(), request);
  memory.add_constraint();
  request.prompts.push_back(to_prompt(*std::move(chat)));
  memory.add(request.prompts.back());
  request.memory_bytes = memory.bytes();
  request.matcher_bytes = memory.matcher_bytes();
  check_lengths(request, model, "messages", length);
  return request;
}

}  // namespace pagoda::server

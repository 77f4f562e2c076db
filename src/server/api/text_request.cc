#include <fmt/format.h>

#include <algorithm>

#include "server/api/answer_grammar.h"
#include "server/api/chat_prompt.h"
#include "server/api/completion_fields.h"
#include "server/api/kv_policy_fields.h"
#include "server/api/request_memory.h"
#include "server/api/speculation_fields.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::uint32_t kOutputTokensDefault = 16;  // the default of OpenAI and vLLM

[[noreturn]] void refuse_empty(const std::string& path) {
  throw ApiError(400, path + ": is empty", path);
}

Prompt text_prompt(const std::string& text, const std::string& path, bool add_special_tokens,
                   bool echo, std::uint64_t tokens_max, const ServedModel& model,
                   const ReadingTerms& terms) {
  if (text.empty()) refuse_empty(path);
  const text::Tokenizer& tokenizer = model.tokenizer;
  const text::EncodeOptions options = {.special = true, .add_bos_eos = add_special_tokens};
  auto tokens = tokenizer.encode_within(text, options, tokens_max);
  if (!tokens) {
    const std::uint64_t most = counted_tokens_max(model);
    const bool counts = tokens_max < most && text.size() <= kRefusedBytesMax;
    const auto whole = counts ? tokenizer.encode_within(text, options, most) : tokens;
    refuse_beyond(tokens_max, path, model, terms.context_tokens,
                  whole ? std::optional<std::uint64_t>(whole->size()) : std::nullopt);
  }
  Prompt prompt;
  prompt.tokens = *std::move(tokens);
  if (echo) prompt.text = text;
  prompt.sources.assign(prompt.tokens.size(), text::Source::kUser);
  if (prompt.tokens.empty() || !add_special_tokens) return prompt;
  if (tokenizer.add_bos() && prompt.tokens.front() == tokenizer.bos()) {
    prompt.sources.front() = text::Source::kTemplate;
  }
  if (tokenizer.add_eos() && prompt.tokens.back() == tokenizer.eos()) {
    prompt.sources.back() = text::Source::kTemplate;
  }
  return prompt;
}

std::string visible_text(const Prompt& prompt, const CompletionRequest& request,
                         const ServedModel& model) {
  std::string text;
  bool at_start = true;
  for (const TokenId id : prompt.tokens) {
    text += model.tokenizer.visible_bytes(id, request.output.show_special_tokens, at_start);
  }
  return text;
}

Prompt token_prompt(const Json& ids, const std::string& path, const CompletionRequest& request,
                    std::uint64_t tokens_max, const ServedModel& model, const ReadingTerms& terms) {
  Prompt prompt;
  if (ids.size() > tokens_max) {
    refuse_beyond(tokens_max, path, model, terms.context_tokens, ids.size());
  }
  prompt.tokens = read_tokens(ids, path, tokens_max);
  if (prompt.tokens.empty()) refuse_empty(path);
  const std::uint32_t vocabulary = model.engine.limits().vocabulary;
  for (std::size_t i = 0; i < prompt.tokens.size(); ++i) {
    if (prompt.tokens[i].value() < vocabulary) continue;
    throw ApiError(400,
                   fmt::format("{}: token id {} is not in the vocabulary of {}",
                               element_path(path, i), prompt.tokens[i].value(), vocabulary),
                   element_path(path, i));
  }
  prompt.sources.assign(prompt.tokens.size(), text::Source::kUser);
  if (request.output.echo) prompt.text = visible_text(prompt, request, model);
  return prompt;
}

// A BOS that the tokenizer added stays in front of the last tokens, as tokenizers that truncate by
// themselves leave it there.
void keep_last_tokens_of_text(std::uint64_t count, const CompletionRequest& request,
                              const ServedModel& model, Prompt& prompt) {
  if (prompt.tokens.size() <= count) return;
  const std::size_t bos = prompt.sources.front() == text::Source::kTemplate ? 1 : 0;
  const std::uint64_t dropped = prompt.tokens.size() - count;
  // A copy: what a vector has room for is not counted as the request's.
  const auto drop = [&](auto& values) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(bos);
    values.erase(begin, begin + static_cast<std::ptrdiff_t>(dropped));
    values = {values.begin(), values.end()};
  };
  drop(prompt.tokens);
  drop(prompt.sources);
  if (request.output.echo) prompt.text = visible_text(prompt, request, model);
  prompt.truncated = PromptTruncation{
      .type = "tokens", .limit_tokens = count, .dropped_tokens = dropped, .gap = bos};
}

}  // namespace

void read_prompts(const Fields& fields, const char* name, const ServedModel& model,
                  const ReadingTerms& terms, CompletionRequest& request,
                  std::optional<std::uint64_t> tokens_kept) {
  const std::uint64_t context = model.context_tokens(request.engine) - 1;
  // Where prompts are truncated afterwards, all of them together may have this many tokens beyond
  // the context.
  std::uint64_t beyond =
      tokens_kept ? counted_tokens_max(model) - std::min(counted_tokens_max(model), context) : 0;
  const bool special = fields.boolean("add_special_tokens").value_or(true);
  const Json& prompt = fields.require(name);
  const std::string path = fields.path_of(name);
  if (prompt.is_array() && prompt.empty()) refuse_empty(path);
  const bool is_batch = prompt.is_array() && !prompt.front().is_number();
  RequestMemory memory(request, is_batch ? prompt.size() : 1, path);
  memory.add_constraint();
  const auto read_one = [&](const Json& one, const std::string& one_path) {
    if (!terms.memory.take(0)) throw terms.memory.refusal();
    const std::uint64_t tokens_max = context + beyond;
    if (one.is_string()) {
      const std::string& text = one.get_ref<const std::string&>();
      request.prompts.push_back(
          text_prompt(text, one_path, special, request.output.echo, tokens_max, model, terms));
    } else if (one.is_array()) {
      request.prompts.push_back(token_prompt(one, one_path, request, tokens_max, model, terms));
    } else {
      refuse_type(one_path, one, "a string or an array of token ids");
    }
    const std::uint64_t tokens = request.prompts.back().tokens.size();
    beyond -= tokens - std::min(tokens, context);
    if (tokens_kept) {
      keep_last_tokens_of_text(*tokens_kept, request, model, request.prompts.back());
    }
    memory.add(request.prompts.back());
  };
  if (!is_batch) read_one(prompt, path);
  for (std::size_t i = 0; is_batch && i < prompt.size(); ++i) {
    read_one(prompt[i], element_path(path, i));
  }
  request.memory_bytes = memory.bytes();
  request.matcher_bytes = memory.matcher_bytes();
}

void refuse_tool_choice(const Fields& fields) {
  const Json* const choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == "none" || *choice == "auto") return;
  throw ApiError(400, "tool_choice: is not supported in a text completion", "tool_choice",
                 "unsupported_parameter");
}

namespace {

OutputLength read_length(const Fields& fields) {
  const auto tokens = fields.integer("max_tokens", 0, INT32_MAX);
  if (!tokens) return {};
  return {static_cast<std::uint32_t>(*tokens), "max_tokens"};
}

// Where no length is named, the default leaves its room.
std::optional<std::uint64_t> tokens_kept(const Fields& fields, const OutputLength& length,
                                         std::uint64_t context) {
  const auto last = read_last_tokens(fields);
  if (!last) return std::nullopt;
  const OutputLength reserved = {length.tokens.value_or(kOutputTokensDefault), length.field};
  return tokens_to_keep(*last, context, *last == Truncation::kAllThatFit ? reserved : length);
}

void read_logprobs(const Fields& fields, CompletionRequest& request) {
  OutputOptions& output = request.output;
  if (const auto count = fields.integer("logprobs", 0, kLogprobsMax)) {
    output.logprobs = static_cast<std::uint32_t>(*count);
  }
  engine::SamplingParams& sampling = request.engine.sampling;
  sampling.logprobs = output.logprobs;
  sampling.prompt_logprobs = output.prompt_logprobs;
  if (output.echo && output.logprobs) {
    sampling.prompt_logprobs = std::max(*output.logprobs, output.prompt_logprobs.value_or(0));
  }
}

}  // namespace

CompletionRequest read_text_request(const Json& body, const ServedModel& model,
                                    const ReadingTerms& terms) {
  const Fields fields(body);
  CompletionRequest request;
  request.ignored = ignored_fields(body);
  request.engine.sampling = model.sampling_defaults;
  read_shared_fields(fields, engine::sequences_max(model.engine.limits()), request,
                     terms.option_name);
  judge_kv_policy(fields, model, request);
  read_speculation(fields, model, request);
  refuse_tool_choice(fields);
  AnswerGrammar(fields, model, terms).finish(nullptr, request);
  request.output.echo = fields.boolean("echo").value_or(false);
  read_logprobs(fields, request);
  const OutputLength length = read_length(fields);
  check_choices(request, model);
  read_prompts(fields, "prompt", model, terms, request,
               tokens_kept(fields, length, terms.context_of(model, request.engine)));
  check_lengths(request, model, "prompt", length, terms.context_tokens);
  request.engine.end.max_tokens = length.tokens;
  if (!length.tokens) {
    std::uint64_t room = kOutputTokensDefault;
    for (const Prompt& prompt : request.prompts) {
      room = std::min<std::uint64_t>(
          room, terms.context_of(model, request.engine) - prompt.tokens.size());
    }
    request.engine.end.max_tokens =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(room, request.engine.end.min_tokens));
  }
  if (length.tokens == 0u || request.cache.prewarm) answer_nothing(request);
  return request;
}

}  // namespace pagoda::server

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "server/api/chat_prompt.h"
#include "server/api/completion_fields.h"
#include "server/api/completion_format.h"
#include "server/api/endpoints.h"
#include "server/api_error.h"
#include "server/fields.h"
#include "text/utf8.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kTextBytesMax = 16 << 20;  // the text of a reply

ChatPrompt read_bounded_chat(Json& body, const ServedModel& model, const ReadingTerms& terms) {
  const std::uint64_t most = counted_tokens_max(model);
  std::optional<ChatPrompt> prompt = read_chat_prompt(body, model, terms, {.room = {most, most}});
  if (!prompt) refuse_beyond(most, "messages", model);
  return *std::move(prompt);
}

std::vector<TokenId> read_prompt_tokens(Json& body, const ServedModel& model,
                                        const ReadingTerms& terms) {
  const Fields fields(body);
  if (fields.find("messages") != nullptr) return read_bounded_chat(body, model, terms).tokens.ids;
  fields.require("prompt");
  const bool special = fields.boolean("add_special_tokens").value_or(true);
  const std::uint64_t most = counted_tokens_max(model);
  auto tokens = model.tokenizer.encode_within(*fields.text("prompt"),
                                              {.special = true, .add_bos_eos = special}, most);
  if (!tokens) refuse_beyond(most, "prompt", model);
  return *std::move(tokens);
}

// Lists runs of tokens that share a source and a message.
Json runs_json(std::span<const text::Origin> origins) {
  Json runs = Json::array();
  for (std::size_t begin = 0; begin < origins.size();) {
    std::size_t end = begin;
    while (end < origins.size() && origins[end] == origins[begin]) ++end;
    Json run = {{"source", text::source_name(origins[begin].source)}, {"tokens", end - begin}};
    const bool has_message = origins[begin].message != text::Origin::kNoMessage;
    run["message"] = has_message ? Json(origins[begin].message) : Json(nullptr);
    runs.push_back(std::move(run));
    begin = end;
  }
  return runs;
}

// A character of several tokens is the text of the last of them.
Json texts_of(std::span<const TokenId> tokens, const text::Tokenizer& tokenizer) {
  Json texts = Json::array();
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    text += tokenizer.bytes_of(tokens[i]);
    const bool is_last = i + 1 == tokens.size();
    const std::size_t whole = text.size() - (is_last ? 0 : text::utf8_incomplete_tail(text));
    texts.push_back(text.substr(0, whole));
    text.erase(0, whole);
  }
  return texts;
}

}  // namespace

Json tokenize(Json body, const ServedModel& model, const ReadingTerms& terms) {
  const std::vector<TokenId> tokens = read_prompt_tokens(body, model, terms);
  Json reply = {{"count", tokens.size()},
                {"max_model_len", model.context_tokens()},
                {"tokens", tokens_json(tokens)}};
  if (Fields(body).boolean("return_token_strs").value_or(false)) {
    Json texts = Json::array();
    for (const TokenId token : tokens) texts.push_back(model.tokenizer.text_of(token));
    reply["token_strs"] = std::move(texts);
  }
  if (Fields(body).boolean("return_token_texts").value_or(false)) {
    reply["token_texts"] = texts_of(tokens, model.tokenizer);
  }
  return reply;
}

Json detokenize(Json body, const ServedModel& model, const ReadingTerms& /*terms*/) {
  const Fields fields(body);
  const std::vector<TokenId> tokens =
      read_tokens(fields.require("tokens"), "tokens", counted_tokens_max(model));
  std::size_t bytes = 0;
  for (const TokenId token : tokens) bytes += model.tokenizer.bytes_of(token).size();
  if (bytes > kTextBytesMax) {
    throw ApiError(
        400,
        fmt::format("tokens: their text has {} bytes, expected at most {}", bytes, kTextBytesMax),
        "tokens", "too_many_tokens");
  }
  const bool special = !fields.boolean("skip_special_tokens").value_or(false);
  const Result<std::string> text = model.tokenizer.decode(tokens, special);
  if (!text.ok()) throw ApiError(400, "tokens: " + text.error().message, "tokens");
  return {{"prompt", text.value()}};
}

Json render_chat(Json body, const ServedModel& model, const ReadingTerms& terms) {
  const ChatPrompt prompt = read_bounded_chat(body, model, terms);
  return {{"prompt", prompt.text.bytes()},
          {"count", prompt.tokens.ids.size()},
          {"max_model_len", model.context_tokens()},
          {"token_ids", tokens_json(prompt.tokens.ids)},
          {"runs", runs_json(prompt.tokens.origins)}};
}

Json render_text(Json body, const ServedModel& model, const ReadingTerms& terms) {
  const CompletionRequest asked = read_text_request(body, model, terms);
  Json prompts = Json::array();
  for (const Prompt& prompt : asked.prompts) {
    prompts.push_back({{"count", prompt.tokens.size()},
                       {"max_model_len", model.context_tokens()},
                       {"token_ids", tokens_json(prompt.tokens)}});
  }
  return prompts;
}

}  // namespace pagoda::server

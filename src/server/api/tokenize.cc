#include <fmt/format.h>

#include "server/api/chat_prompt.h"
#include "server/api/completion_format.h"
#include "server/api/endpoints.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

std::vector<TokenId> read_prompt_tokens(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  if (fields.find("messages") != nullptr) return read_chat_prompt(body, model).tokens.ids;
  fields.require("prompt");
  const bool special = fields.boolean("add_special_tokens").value_or(true);
  return model.tokenizer.encode(*fields.text("prompt"), {.special = true, .add_bos_eos = special});
}

// Who wrote which tokens: runs of one source and message.
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

}  // namespace

Json tokenize(const Json& body, const ServedModel& model) {
  const std::vector<TokenId> tokens = read_prompt_tokens(body, model);
  Json reply = {{"count", tokens.size()},
                {"max_model_len", model.context_tokens()},
                {"tokens", tokens_json(tokens)}};
  if (Fields(body).boolean("return_token_strs").value_or(false)) {
    Json texts = Json::array();
    for (const TokenId token : tokens) texts.push_back(model.tokenizer.text_of(token));
    reply["token_strs"] = std::move(texts);
  }
  return reply;
}

Json detokenize(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  const std::vector<TokenId> tokens = read_tokens(fields.require("tokens"), "tokens");
  const bool special = !fields.boolean("skip_special_tokens").value_or(false);
  const Result<std::string> text = model.tokenizer.decode(tokens, special);
  if (!text.ok()) throw ApiError(400, "tokens: " + text.error().message, "tokens");
  return {{"prompt", text.value()}};
}

Json render_chat(const Json& body, const ServedModel& model) {
  const ChatPrompt prompt = read_chat_prompt(body, model);
  return {{"prompt", prompt.text.bytes()},
          {"count", prompt.tokens.ids.size()},
          {"max_model_len", model.context_tokens()},
          {"token_ids", tokens_json(prompt.tokens.ids)},
          {"runs", runs_json(prompt.tokens.origins)}};
}

}  // namespace pagoda::server

#include "server/api/logprobs_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/utf8.h"

namespace pagoda::server {
namespace {

std::span<const engine::TokenLogprob> best(const engine::TokenScore& score, std::uint32_t count) {
  return std::span(score.top).first(std::min<std::size_t>(count, score.top.size()));
}

std::string_view token_bytes(const text::Tokenizer& tokenizer, TokenId token) {
  bool at_start = false;
  return tokenizer.visible_bytes(token, true, at_start);
}

// JSON has no infinity: vLLM writes -9999 for a token of probability 0.
double finite(float logprob) { return std::max<double>(logprob, -9999.0); }

Json chat_entry(const engine::TokenLogprob& scored, const text::Tokenizer& tokenizer) {
  Json bytes = Json::array();
  for (const char byte : token_bytes(tokenizer, scored.token)) {
    bytes.push_back(static_cast<unsigned char>(byte));
  }
  return {{"token", token_text(tokenizer, scored.token)},
          {"logprob", finite(scored.logprob)},
          {"bytes", std::move(bytes)}};
}

std::uint64_t characters(std::string_view text) {
  return static_cast<std::uint64_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

// Maps the best tokens' texts to log-probabilities; the sampled token is always among them.
Json text_top(const engine::TokenScore& score, std::uint32_t count,
              const text::Tokenizer& tokenizer) {
  Json top = Json::object();
  const auto add = [&](const engine::TokenLogprob& scored) {
    top.emplace(token_text(tokenizer, scored.token), finite(scored.logprob));
  };
  for (const engine::TokenLogprob& scored : best(score, count)) add(scored);
  add(score.chosen);
  return top;
}

}  // namespace

std::string token_text(const text::Tokenizer& tokenizer, TokenId token) {
  const std::string_view bytes = token_bytes(tokenizer, token);
  if (text::utf8_valid_prefix(bytes) == bytes.size()) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

Json chat_logprobs(const Piece& piece, std::uint32_t count, const text::Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const OptionalScore& score : piece.scores) {
    if (!score) continue;
    Json entry = chat_entry(score->chosen, tokenizer);
    Json top = Json::array();
    for (const engine::TokenLogprob& scored : best(*score, count)) {
      top.push_back(chat_entry(scored, tokenizer));
    }
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

Json text_logprobs(const Piece& piece, std::uint32_t count, const text::Tokenizer& tokenizer,
                   std::uint64_t& offset) {
  Json offsets = Json::array();
  Json logprobs = Json::array();
  Json tokens = Json::array();
  Json tops = Json::array();
  for (std::size_t i = 0; i < piece.scores.size(); ++i) {
    const OptionalScore& score = piece.scores[i];
    offsets.push_back(offset);
    offset += characters(token_bytes(tokenizer, piece.tokens[i]));
    tokens.push_back(token_text(tokenizer, piece.tokens[i]));
    logprobs.push_back(score ? Json(finite(score->chosen.logprob)) : Json(nullptr));
    tops.push_back(score ? text_top(*score, count, tokenizer) : Json(nullptr));
  }
  return {{"text_offset", std::move(offsets)},
          {"token_logprobs", std::move(logprobs)},
          {"tokens", std::move(tokens)},
          {"top_logprobs", std::move(tops)}};
}

Json prompt_logprobs(std::span<const engine::TokenScore> scores, std::uint32_t count,
                     const text::Tokenizer& tokenizer) {
  Json list = Json::array({nullptr});
  for (const engine::TokenScore& score : scores) {
    Json entry = Json::object();
    const auto add = [&](const engine::TokenLogprob& scored) {
      entry.emplace(std::to_string(scored.token.value()),
                    Json{{"logprob", finite(scored.logprob)},
                         {"rank", scored.rank},
                         {"decoded_token", token_text(tokenizer, scored.token)}});
    };
    add(score.chosen);
    for (const engine::TokenLogprob& scored : best(score, count)) add(scored);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace pagoda::server

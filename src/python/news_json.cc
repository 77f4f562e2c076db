#include "python/news_json.h"

#include <algorithm>
#include <limits>
#include <string>

#include "server/api/embeddings.h"
#include "server/api/logprobs_json.h"

namespace pagoda::python {
namespace {

// JSON has no infinity: vLLM writes -9999 for a token of probability 0.
server::Json score_json(const engine::TokenLogprob& scored, const text::Tokenizer& tokenizer) {
  return server::Json::array({scored.token.value(), std::max<double>(scored.logprob, -9999.0),
                              scored.rank, server::token_text(tokenizer, scored.token)});
}

server::Json token_scores(const engine::TokenScore& score, std::uint32_t count,
                          const text::Tokenizer& tokenizer) {
  server::Json made = server::Json::array({score_json(score.chosen, tokenizer)});
  const std::size_t top = std::min<std::size_t>(count, score.top.size());
  for (std::size_t i = 0; i < top; ++i) made.push_back(score_json(score.top[i], tokenizer));
  return made;
}

}  // namespace

server::Json ids_json(std::span<const TokenId> ids) {
  server::Json made = server::Json::array();
  for (const TokenId id : ids) made.push_back(id.value());
  return made;
}

server::Json piece_json(const server::Piece& piece, const text::Tokenizer& tokenizer) {
  server::Json made = {{"text", piece.text}, {"token_ids", ids_json(piece.tokens)}};
  if (!piece.scores.empty()) {
    server::Json scores = server::Json::array();
    for (const server::OptionalScore& score : piece.scores) {
      scores.push_back(
          score ? token_scores(*score, std::numeric_limits<std::uint32_t>::max(), tokenizer)
                : server::Json(nullptr));
    }
    made["scores"] = std::move(scores);
  }
  if (!piece.finish_reason.empty()) {
    made["finish_reason"] = piece.finish_reason;
    made["stop_reason"] = piece.stop_reason;
  }
  return made;
}

server::Json scores_json(std::span<const engine::TokenScore> scores, std::uint32_t count,
                         const text::Tokenizer& tokenizer) {
  server::Json made = server::Json::array({nullptr});  // a prompt's first token has no score
  for (const engine::TokenScore& score : scores) {
    made.push_back(token_scores(score, count, tokenizer));
  }
  return made;
}

server::Json embedding_json(const std::vector<float>& vector,
                            const server::CompletionRequest& request) {
  const std::span<const float> one(vector);
  const std::string reply = server::embeddings_json(std::span(&one, 1), request, "", {});
  return server::parse_json(reply)["data"][0]["embedding"];
}

}  // namespace pagoda::python

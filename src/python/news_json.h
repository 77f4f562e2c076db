// News of requests become JSON that the package's Python files read (python/pagoda/_requests.py).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampled_token.h"
#include "server/api/choice_text.h"
#include "server/api/completion_request.h"
#include "server/json.h"
#include "text/tokenizer.h"

namespace pagoda::python {

server::Json ids_json(std::span<const TokenId> ids);
// {"text", "token_ids", "scores"?, "finish_reason", "stop_reason"}
server::Json piece_json(const server::Piece& piece, const text::Tokenizer& tokenizer);
// Each token has its own [id, logprob, rank, text] and those of the best, at most `count`; null
// where a token has no score.
server::Json scores_json(std::span<const engine::TokenScore> scores, std::uint32_t count,
                         const text::Tokenizer& tokenizer);
// The vector has length 1, and the numbers are those that /v1/embeddings sends.
server::Json embedding_json(const std::vector<float>& vector,
                            const server::CompletionRequest& request);

}  // namespace pagoda::python

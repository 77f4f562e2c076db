// Log-probabilities as JSON of the two APIs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "server/api/choice_text.h"
#include "server/json.h"
#include "text/tokenizer.h"

namespace pagoda::server {

// Returns a token's text, also of control tokens; "bytes:\xe2\x82", as in OpenAI's API, where the
// token is no whole character.
std::string token_text(const text::Tokenizer& tokenizer, TokenId token);

// {"content": [{"token", "logprob", "bytes", "top_logprobs": […]}]}
Json chat_logprobs(const Piece& piece, std::uint32_t count, const text::Tokenizer& tokenizer);

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}; `offset` is the number of characters
// before the piece and moves to its end.
Json text_logprobs(const Piece& piece, std::uint32_t count, const text::Tokenizer& tokenizer,
                   std::uint64_t& offset);

// Follows vLLM: null for the first token, then {"ID": {"logprob", "rank", "decoded_token"}} for
// each.
Json prompt_logprobs(std::span<const engine::TokenScore> scores, std::uint32_t count,
                     const text::Tokenizer& tokenizer);

}  // namespace pagoda::server

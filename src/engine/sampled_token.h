// A token with its log-probability travels from the runner to the reply.
#pragma once

#include <optional>
#include <vector>

#include "base/token_id.h"
#include "engine/token_logprob.h"

namespace pagoda::engine {

// TokenScore is a token and, where asked for, the best tokens of its row.
struct TokenScore {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // by rank
};

struct SampledToken {
  TokenId token;
  std::optional<TokenScore> score;  // where log-probabilities were asked for
  bool ends_grammar = false;        // an end token: the text is all that its grammar wants
};

}  // namespace pagoda::engine

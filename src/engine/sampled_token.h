// A token with its log-probability, as it travels from the runner to whoever asked.
#pragma once

#include <optional>
#include <vector>

#include "base/token_id.h"
#include "engine/token_logprob.h"

namespace pagoda::engine {

// A token and, where asked for, the best ones of its row.
struct TokenScore {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // by rank
};

struct SampledToken {
  TokenId token;
  std::optional<TokenScore> score;  // where log-probabilities were asked for
};

}  // namespace pagoda::engine

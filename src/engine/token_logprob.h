// TokenLogprob is a token's log-probability and its rank in its row.
#pragma once

#include <cstdint>

#include "base/token_id.h"

namespace pagoda::engine {

struct TokenLogprob {
  TokenId token;
  float logprob;
  std::uint32_t rank;  // 1: the best; ties by id
};

}  // namespace pagoda::engine

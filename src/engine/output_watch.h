// OutputWatch sees the tokens of a request's sequences as they are chosen and ends a sequence where
// its text ends: the engine knows tokens, and no text.
//
// Thread rule: the engine's thread. A watch allocates nothing.
#pragma once

#include <cstdint>

#include "base/token_id.h"

namespace pagoda::engine {

class OutputWatch {
 public:
  virtual ~OutputWatch() = default;
  // Called once for each token of a sequence, in their order, but for an end or stop token. True:
  // the sequence ends with this token, and nothing behind it is computed or published.
  virtual bool ends_with(std::uint32_t sequence, TokenId token) = 0;
};

}  // namespace pagoda::engine

// The tokens of one request, each once, with how often it occurs in the output: what penalties
// need. Memory goes with the different tokens seen, not with the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace pagoda::engine {

class SeenTokens {
 public:
  struct Entry {
    TokenId token;
    std::uint32_t output_count;  // 0: in the prompt only
  };

  SeenTokens() = default;
  // Room for `output_tokens` more is taken here; beyond it the list grows as vectors do.
  SeenTokens(std::span<const TokenId> prompt, std::size_t output_tokens);

  void add_output_token(TokenId token);

  // By ascending id.
  std::span<const Entry> entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace pagoda::engine

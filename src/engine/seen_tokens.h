// SeenTokens lists the tokens of one request, each once, with their counts in the output, for
// penalties. Memory goes with the distinct tokens seen, not with the vocabulary.
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
    std::uint32_t output_count;  // 0: the token is in the prompt only
  };

  SeenTokens() = default;
  // Reserves room for `output_tokens` more; beyond that the list grows as vectors do.
  SeenTokens(std::span<const TokenId> prompt, std::size_t output_tokens);

  void add_output_token(TokenId token);

  // Entries are ordered by ascending id.
  std::span<const Entry> entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace pagoda::engine

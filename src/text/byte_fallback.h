// Bytes that no token's text covers become tokens one by one. A byte that the vocabulary cannot
// write becomes the unknown token, or is dropped where there is none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "text/vocabulary.h"

namespace pagoda::text {

inline void append_byte_tokens(std::string_view bytes, const Vocabulary& vocabulary,
                               std::vector<TokenId>& tokens) {
  for (const char byte : bytes) {
    const auto& token = vocabulary.byte_tokens[static_cast<std::uint8_t>(byte)];
    if (token.has_value()) {
      tokens.push_back(*token);
    } else if (vocabulary.unknown.has_value()) {
      tokens.push_back(*vocabulary.unknown);
    }
  }
}

}  // namespace pagoda::text

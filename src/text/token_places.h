// Where the tokens of a fragment begin in its text.
//
// Tokens spell their text, with four exceptions: a space put before a fragment, U+2581 in the text
// that tokens show as a space, bytes that became the unknown token one by one, and bytes that no
// token stands for.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/token_id.h"
#include "text/vocabulary.h"

namespace pagoda::text {

class TokenPlaces {
 public:
  TokenPlaces(const Vocabulary& vocabulary, std::string_view fragment, bool after_break)
      : vocabulary_(vocabulary),
        fragment_(fragment),
        before_space_(after_break && vocabulary.add_space_prefix) {}

  // Of the fragment's tokens, in order: where this one begins.
  std::size_t next(TokenId id);

 private:
  // Bytes of `fragment_` from `at` that `bytes` spell; nothing spelt is kNoMatch.
  std::size_t spelt(std::string_view bytes, std::size_t at) const;

  static constexpr std::size_t kNoMatch = static_cast<std::size_t>(-1);

  const Vocabulary& vocabulary_;
  std::string_view fragment_;
  bool before_space_;  // the space put before the fragment is still to come
  std::size_t at_ = 0;
};

}  // namespace pagoda::text

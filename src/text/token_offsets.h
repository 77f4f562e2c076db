// Finds the offsets at which the tokens of a fragment begin in its text, in time linear in the
// text.
//
// Encoders cover a fragment from left to right. All except those of byte-level vocabularies first
// replace spaces by U+2581 and, where the vocabulary asks for it, put one more in front. Then
//
//   a byte token      covers one byte, which may be one of the three of a U+2581;
//   the unknown token covers one byte;
//   any other token   covers the bytes of its text;
//   no token          covers a byte that none stands for, where there is no unknown token.
//
// So a token begins where the one before it ends, but for bytes of the last kind between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "text/vocabulary.h"

namespace pagoda::text {

class TokenOffsets {
 public:
  // Fragment and after_break are those that the encoder got. The arguments must outlive the object.
  TokenOffsets(const Vocabulary& vocabulary, std::string_view fragment, bool after_break)
      : vocabulary_(vocabulary), fragment_(fragment) {
    at_.before_fragment = after_break && vocabulary.prefixes_space(fragment);
  }

  // Returns where the fragment's next token begins; call this for every token in order. A token
  // that does not follow in the text covers nothing.
  std::size_t next(TokenId id);

  // Counts the bytes that next() has looked at.
  std::size_t bytes_read() const { return bytes_read_; }

 private:
  // A byte of the fragment with its space marks.
  struct Cursor {
    bool before_fragment = false;  // inside the mark that was put before the fragment
    std::size_t offset = 0;        // in the fragment, in bytes
    std::size_t into_mark = 0;     // the byte's index in the mark for the space at `offset`
  };

  bool is_end(const Cursor& at) const {
    return !at.before_fragment && at.offset == fragment_.size();
  }
  bool is_in_mark(const Cursor& at) const;
  char byte_at(const Cursor& at) const;
  void step(Cursor& at) const;

  // Returns the bytes that the token covers; not for the unknown token.
  std::string_view spelling(TokenId id) const;
  // Returns whether the byte at at_ has no token of its own.
  bool is_left_out() const;
  // Moves at_ to where the spelling begins, over dropped bytes, and returns where it ends.
  std::optional<Cursor> find(std::string_view spelling);
  void find_borders(std::string_view spelling);

  const Vocabulary& vocabulary_;
  std::string_view fragment_;
  Cursor at_;
  std::size_t bytes_read_ = 0;
  // The Knuth-Morris-Pratt table of the spelling: for byte i, the length of its longest proper
  // prefix that ends there.
  std::vector<std::uint32_t> borders_;
};

}  // namespace pagoda::text

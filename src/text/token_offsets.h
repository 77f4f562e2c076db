// Where the tokens of a fragment begin in its text, in time linear in the text.
//
// Encoders cover a fragment from left to right. All but those of byte-level vocabularies put U+2581
// for its spaces first and, where the vocabulary asks for it, one more before it. Then
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
  // Fragment and after_break as the encoder got them. What is referred to must outlive this.
  TokenOffsets(const Vocabulary& vocabulary, std::string_view fragment, bool after_break)
      : vocabulary_(vocabulary), fragment_(fragment) {
    at_.before_fragment = after_break && vocabulary.add_space_prefix;
  }

  // Of the fragment's tokens, in order: where this one begins. One that does not follow in the text
  // covers nothing.
  std::size_t next(TokenId id);

  // Bytes that next() looked at so far.
  std::size_t bytes_read() const { return bytes_read_; }

 private:
  // A byte of the fragment with its marks.
  struct Cursor {
    bool before_fragment = false;  // in the mark that was put there
    std::size_t offset = 0;        // in the fragment
    std::size_t into_mark = 0;     // of the byte, in the mark for the space at `offset`
  };

  bool is_end(const Cursor& at) const {
    return !at.before_fragment && at.offset == fragment_.size();
  }
  bool is_in_mark(const Cursor& at) const;
  char byte_at(const Cursor& at) const;
  void step(Cursor& at) const;

  // What the token covers, the unknown token left aside.
  std::string_view spelling(TokenId id) const;
  // Whether the byte at_ has no token when it is alone.
  bool is_left_out() const;
  // Moves at_ to where the spelling begins, over bytes that are left out, and tells where it ends.
  std::optional<Cursor> find(std::string_view spelling);
  void find_borders(std::string_view spelling);

  const Vocabulary& vocabulary_;
  std::string_view fragment_;
  Cursor at_;
  std::size_t bytes_read_ = 0;
  // Of the spelling that is looked for: how long its longest beginning is that ends at byte i, but
  // for all of it.
  std::vector<std::uint32_t> borders_;
};

}  // namespace pagoda::text

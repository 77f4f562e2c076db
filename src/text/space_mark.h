// Texts in which U+2581 stands for a space, and their words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/vocabulary.h"

namespace pagoda::text {

inline void append_with_marks(std::string_view text, std::string& marked) {
  while (true) {
    const std::size_t space = text.find(' ');
    marked.append(text.substr(0, space));
    if (space == std::string_view::npos) return;
    marked.append(kSpaceMark);
    text.remove_prefix(space + 1);
  }
}

// Returns the end of the word that begins at `from`: before the next mark that follows something
// else.
inline std::size_t marked_word_end(std::string_view text, std::size_t from) {
  while (text.substr(from).starts_with(kSpaceMark)) from += kSpaceMark.size();
  const std::size_t mark = text.find(kSpaceMark, from);
  return mark == std::string_view::npos ? text.size() : mark;
}

// Returns whether a piece crosses the end of a word. When no piece of a vocabulary does, words can
// be encoded one by one with the same result.
inline bool spans_marked_words(std::string_view piece) {
  return marked_word_end(piece, 0) != piece.size();
}

}  // namespace pagoda::text

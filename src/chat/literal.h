// Literals of a form: white space around and within them is not significant when they are read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::chat {

constexpr bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Returns the literal without white space at its ends.
std::string_view core(std::string_view literal);
// Returns the white space at the literal's start and at its end; all of it is `head` when there is
// nothing else.
std::string_view head_space(std::string_view literal);
std::string_view tail_space(std::string_view literal);
// Returns the literal's parts between white space.
std::vector<std::string> words(std::string_view literal);
// The same, and a tag that follows another is a part of its own: "</arg_key><arg_value>" has two.
std::vector<std::string> tags(std::string_view literal);

enum class LiteralMatch : unsigned char { kNo, kPartial, kYes };

// Compares the start of `text` with `literal`; kPartial: the text ends within it.
LiteralMatch match_start(std::string_view text, std::string_view literal);

struct WordsMatch {
  LiteralMatch match = LiteralMatch::kNo;
  std::size_t bytes = 0;  // of the text, where it matches
};

// Compares the start of `text` with words between which any white space may stand.
WordsMatch match_words(std::string_view text, const std::vector<std::string>& words);

// Comparing two renderings finds where they part, which may be within a tag:
//   <|START_TEXT|> and <|START_THINKING|> part behind "<|START_T".
// These give the longest common prefix that does not end within a tag, and the longest common
// suffix that does not begin within one.
std::size_t shared_prefix(std::string_view a, std::string_view b);
std::size_t shared_suffix(std::string_view a, std::string_view b);

}  // namespace pagoda::chat

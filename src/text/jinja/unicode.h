// Character classes as in Python: what str.strip() strips, what upper() and lower() change.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pagoda::text::jinja {

bool is_space(char32_t code);
// These characters end a line for str.splitlines().
bool ends_line(char32_t code);
// repr() shows these characters as they are.
bool is_printable(char32_t code);
bool is_letter(char32_t code);
bool is_digit(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);
// True for upper, lower and title case.
bool is_cased(char32_t code);
// True for characters within a word that do not change where it ends: apostrophes, accents.
bool is_case_ignorable(char32_t code);
// Returns the value, 0 to 9, of a decimal digit of any script.
std::optional<unsigned> decimal_digit(char32_t code);

// Append the character in another case, which may be up to three characters.
void append_upper(std::string& text, char32_t code);
void append_lower(std::string& text, char32_t code);
void append_title(std::string& text, char32_t code);

void append_utf8(std::string& text, char32_t code);

// The character at byte `at` of well-formed `text`, and its bytes.
struct Character {
  char32_t code;
  std::size_t bytes;
};
Character character_at(std::string_view text, std::size_t at);
// Returns the character that ends at byte `end`, which is not 0.
Character character_before(std::string_view text, std::size_t end);
std::size_t count_characters(std::string_view text);
// Returns where character number `index` begins; the end when there are fewer.
std::size_t byte_of_character(std::string_view text, std::size_t index);

// These return how many bytes of white space `text` begins or ends with.
std::size_t leading_space_bytes(std::string_view text);
std::size_t trailing_space_bytes(std::string_view text);

}  // namespace pagoda::text::jinja

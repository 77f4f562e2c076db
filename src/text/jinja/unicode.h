// Characters as Python sees them: what str.strip() strips, what upper() and lower() change.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pagoda::text::jinja {

bool is_space(char32_t code);
// Characters that repr() shows as they are.
bool is_printable(char32_t code);
bool is_letter(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);
// One character to one: "ß" stays.
char32_t to_upper(char32_t code);
char32_t to_lower(char32_t code);

void append_utf8(std::string& text, char32_t code);

// The character that well-formed `text` has at byte `at`, and its bytes.
struct Character {
  char32_t code;
  std::size_t bytes;
};
Character character_at(std::string_view text, std::size_t at);
std::size_t count_characters(std::string_view text);
// Where character number `index` begins; the end when there are fewer.
std::size_t byte_of_character(std::string_view text, std::size_t index);

// How many bytes of white space `text` begins or ends with.
std::size_t leading_space_bytes(std::string_view text);
std::size_t trailing_space_bytes(std::string_view text);

}  // namespace pagoda::text::jinja

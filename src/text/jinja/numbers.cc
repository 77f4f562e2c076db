#include "text/jinja/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/ascii.h"
#include "text/jinja/fault.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

// Converts to ASCII without white space around the number and underscores within; returns nothing
// for text that is no number.
std::optional<std::string> plain_number(std::string_view text) {
  text.remove_prefix(leading_space_bytes(text));
  text.remove_suffix(trailing_space_bytes(text));
  std::string marked;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    const auto digit = decimal_digit(character.code);
    if (!digit && character.code >= 0x80) return std::nullopt;
    marked += digit ? static_cast<char>('0' + *digit) : static_cast<char>(character.code);
    at += character.bytes;
  }
  std::string plain;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i] != '_') {
      plain += marked[i];
    } else if (i == 0 || i + 1 == marked.size() || !is_ascii_digit(marked[i - 1]) ||
               !is_ascii_digit(marked[i + 1])) {
      return std::nullopt;
    }
  }
  return plain;
}

// Returns whether the text is a word that stands for a number.
bool is_number_word(std::string_view text) {
  std::string lower;
  for (const char c : text.substr(0, 9)) append_lower(lower, static_cast<unsigned char>(c));
  return lower == "inf" || lower == "infinity" || lower == "nan";
}

}  // namespace

std::optional<std::int64_t> parsed_integer(std::string_view text) {
  const auto plain = plain_number(text);
  if (!plain) return std::nullopt;
  const bool has_sign = plain->starts_with('+') || plain->starts_with('-');
  const auto digits = plain->begin() + (has_sign ? 1 : 0);
  if (digits == plain->end() || !std::all_of(digits, plain->end(), is_ascii_digit)) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  const char* const begin = plain->data() + (plain->starts_with('+') ? 1 : 0);
  const auto parsed = std::from_chars(begin, plain->data() + plain->size(), value);
  if (parsed.ec != std::errc{}) fail("a number beyond 64 bits");
  return value;
}

std::optional<double> parsed_float(std::string_view text) {
  const auto plain = plain_number(text);
  if (!plain) return std::nullopt;
  const bool has_sign = plain->starts_with('+') || plain->starts_with('-');
  const std::string_view unsigned_text = std::string_view(*plain).substr(has_sign ? 1 : 0);
  if (unsigned_text.empty()) return std::nullopt;
  const bool is_numeric = is_ascii_digit(unsigned_text[0]) || unsigned_text[0] == '.';
  if (!is_numeric && !is_number_word(unsigned_text)) return std::nullopt;
  double value = 0;
  const char* const end = unsigned_text.data() + unsigned_text.size();
  const auto parsed = std::from_chars(unsigned_text.data(), end, value);
  if (parsed.ec == std::errc::invalid_argument || parsed.ptr != end) return std::nullopt;
  // A number too large for a double is infinite, one too small is 0.
  if (parsed.ec != std::errc{}) value = std::strtod(unsigned_text.data(), nullptr);
  return plain->starts_with('-') ? -value : value;
}

std::int64_t truncated(double number) {
  const double whole = std::trunc(number);
  if (!(whole >= -0x1p63 && whole < 0x1p63)) fail("a number beyond 64 bits");
  return static_cast<std::int64_t>(whole);
}

}  // namespace pagoda::text::jinja

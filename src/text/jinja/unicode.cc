#include "text/jinja/unicode.h"

#include <algorithm>
#include <span>

#include "text/jinja/unicode_tables.h"
#include "text/utf8.h"
#include "text/white_space.h"

namespace pagoda::text::jinja {
namespace {

// `borders` alternates between the first character of a range and the first behind it.
bool is_between_borders(std::span<const char32_t> borders, char32_t code) {
  const auto behind = std::upper_bound(borders.begin(), borders.end(), code);
  return (behind - borders.begin()) % 2 != 0;
}

// Looks in `longer`, where the character becomes several, then in `runs`; else the character stays.
void append_case(std::string& text, char32_t code, std::span<const CaseRun> runs,
                 std::span<const LongCase> longer) {
  const auto several =
      std::lower_bound(longer.begin(), longer.end(), code,
                       [](const LongCase& each, char32_t wanted) { return each.code < wanted; });
  if (several != longer.end() && several->code == code) {
    for (const char32_t each : several->to) {
      if (each != 0) append_utf8(text, each);
    }
    return;
  }
  const auto behind =
      std::upper_bound(runs.begin(), runs.end(), code,
                       [](char32_t wanted, const CaseRun& each) { return wanted < each.first; });
  if (behind != runs.begin()) {
    const CaseRun& run = *(behind - 1);
    if (code <= run.last && (code - run.first) % run.stride == 0) {
      code = static_cast<char32_t>(static_cast<std::int32_t>(code) + run.delta);
    }
  }
  append_utf8(text, code);
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

bool is_space(char32_t code) { return is_white_space(code) || (code >= 28 && code < 32); }

bool ends_line(char32_t code) {
  return (code >= '\n' && code <= '\r') || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

bool is_printable(char32_t code) { return is_between_borders(kPrintable, code); }
bool is_letter(char32_t code) { return is_between_borders(kLetters, code); }
bool is_digit(char32_t code) { return is_between_borders(kDigits, code); }
bool is_upper(char32_t code) { return is_between_borders(kUpperCase, code); }
bool is_lower(char32_t code) { return is_between_borders(kLowerCase, code); }
bool is_cased(char32_t code) {
  return is_upper(code) || is_lower(code) || is_between_borders(kTitleCase, code);
}
bool is_case_ignorable(char32_t code) { return is_between_borders(kCaseIgnorable, code); }

std::optional<unsigned> decimal_digit(char32_t code) {
  const auto* const behind = std::upper_bound(kDecimalZeros.begin(), kDecimalZeros.end(), code);
  if (behind == kDecimalZeros.begin() || code - *(behind - 1) > 9) return std::nullopt;
  return static_cast<unsigned>(code - *(behind - 1));
}

void append_upper(std::string& text, char32_t code) {
  const bool changes = code >= 'a' && code <= 'z';
  if (code < 0x80) {
    text += static_cast<char>(changes ? code - 'a' + 'A' : code);
  } else {
    append_case(text, code, kToUpper, kToLongUpper);
  }
}
void append_lower(std::string& text, char32_t code) {
  const bool changes = code >= 'A' && code <= 'Z';
  if (code < 0x80) {
    text += static_cast<char>(changes ? code - 'A' + 'a' : code);
  } else {
    append_case(text, code, kToLower, kToLongLower);
  }
}
void append_title(std::string& text, char32_t code) {
  const bool changes = code >= 'a' && code <= 'z';
  if (code < 0x80) {
    text += static_cast<char>(changes ? code - 'a' + 'A' : code);
  } else {
    append_case(text, code, kToTitle, kToLongTitle);
  }
}

void append_utf8(std::string& text, char32_t code) {
  const auto tail = [&](unsigned shift) {
    text += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0U | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0U | (code >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0U | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

Character character_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const std::size_t bytes = utf8_char_bytes(rest);
  // A byte that begins no character stands for itself, so that a walk over the text always
  // advances.
  if (bytes == 0) return {0xFFFD, 1};
  return {utf8_code_point(rest, bytes), bytes};
}

Character character_before(std::string_view text, std::size_t end) {
  std::size_t begin = end - 1;
  while (begin > 0 && is_continuation(text[begin])) --begin;
  return character_at(text, begin);
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += is_continuation(byte) ? 0 : 1;
  return count;
}

std::size_t byte_of_character(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (is_continuation(text[at])) continue;
    if (index == 0) break;
    --index;
  }
  return at;
}

std::size_t leading_space_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (!is_space(character.code)) break;
    at += character.bytes;
  }
  return at;
}

std::size_t trailing_space_bytes(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const Character character = character_before(text, end);
    if (!is_space(character.code)) break;
    end -= character.bytes;
  }
  return text.size() - end;
}

}  // namespace pagoda::text::jinja

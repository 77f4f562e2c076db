#include "text/jinja/unicode.h"

#include <clocale>
#include <cwctype>

#include "text/utf8.h"

namespace pagoda::text::jinja {
namespace {

// Unicode's own tables, whatever the user's language; plain ASCII on systems without them.
locale_t unicode_locale() {
  static const locale_t kLocale = [] {
    const locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return unicode != nullptr ? unicode : newlocale(LC_CTYPE_MASK, "C", nullptr);
  }();
  return kLocale;
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

bool is_space(char32_t code) {
  if (code < 0x80)
    return code == ' ' || (code >= '\t' && code <= '\r') || (code >= 28 && code < 32);
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_printable(char32_t code) {
  if (code < 0x7F) return code >= ' ';
  const bool format = code == 0xAD || (code >= 0x200B && code <= 0x200F) ||
                      (code >= 0x202A && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
                      code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFB);
  const bool private_use = (code >= 0xE000 && code <= 0xF8FF) || code >= 0xE0000;
  if (format || private_use || is_space(code)) return false;
  return iswprint_l(static_cast<wint_t>(code), unicode_locale()) != 0;
}

bool is_letter(char32_t code) {
  return iswalpha_l(static_cast<wint_t>(code), unicode_locale()) != 0;
}
bool is_upper(char32_t code) { return to_lower(code) != code; }
bool is_lower(char32_t code) { return to_upper(code) != code; }

char32_t to_upper(char32_t code) {
  return static_cast<char32_t>(towupper_l(static_cast<wint_t>(code), unicode_locale()));
}

char32_t to_lower(char32_t code) {
  return static_cast<char32_t>(towlower_l(static_cast<wint_t>(code), unicode_locale()));
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
  return {utf8_code_point(rest, bytes), bytes};
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
    std::size_t begin = end - 1;
    while (begin > 0 && is_continuation(text[begin])) --begin;
    if (!is_space(character_at(text, begin).code)) break;
    end = begin;
  }
  return text.size() - end;
}

}  // namespace pagoda::text::jinja

// Random texts for tests, the same for the same seed: nasty Unicode, and plain bytes.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::text {

inline void append_utf8(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// Makes well-formed text without U+2581, which some vocabularies cannot tell from a space.
inline std::string random_unicode(std::mt19937& random, std::size_t characters) {
  constexpr std::u32string_view kFavourites =
      U" \t\n\r\u00A0\u3000\u180E\u200B'sStTdm.,!?<>|_0123456789aAeE\u00E9\u0301\u0915\u093F"
      U"\u4E2D\u3042\uAC00\u0627\u0661\u2167\u00BD\U0001F600\U0001F468\u200D";
  std::string text;
  while (characters-- > 0) {
    char32_t code = kFavourites[random() % kFavourites.size()];
    const std::uint32_t kind = static_cast<std::uint32_t>(random() % 4);
    if (kind == 0) code = static_cast<char32_t>(random() % 0x3000);
    if (kind == 1 && random() % 4 == 0) code = static_cast<char32_t>(random() % 0x110000);
    if ((code >= 0xD800 && code < 0xE000) || code == 0x2581) code = U'x';
    append_utf8(text, code);
  }
  return text;
}

inline std::string random_bytes(std::mt19937& random, std::size_t bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(random());
  return text;
}

}  // namespace pagoda::text

// UTF-8, one character at a time. Well-formed means Unicode's definition: no overlong forms, no
// surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pagoda::text {

// Returns how many bytes a character that starts with `lead` has; 0 when no character starts so.
constexpr std::size_t utf8_expected_bytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

// Returns whether `second` may follow `lead` in a character of two or more bytes.
constexpr bool utf8_second_fits(unsigned char lead, unsigned char second) {
  if (lead == 0xE0) return second >= 0xA0 && second <= 0xBF;
  if (lead == 0xED) return second >= 0x80 && second <= 0x9F;
  if (lead == 0xF0) return second >= 0x90 && second <= 0xBF;
  if (lead == 0xF4) return second >= 0x80 && second <= 0x8F;
  return second >= 0x80 && second <= 0xBF;
}

// Returns the bytes of the well-formed character that `text` begins with; 0 when there is none.
constexpr std::size_t utf8_char_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const std::size_t bytes = utf8_expected_bytes(byte(0));
  if (bytes <= 1) return bytes;
  if (bytes > text.size() || !utf8_second_fits(byte(0), byte(1))) return 0;
  for (std::size_t i = 2; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return bytes;
}

// Returns the code point of the well-formed character of `bytes` bytes that `text` begins with.
constexpr char32_t utf8_code_point(std::string_view text, std::size_t bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (bytes == 1) return byte(0);
  char32_t code = byte(0) & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) code = (code << 6) | (byte(i) & 0x3Fu);
  return code;
}

// Returns the bytes of the longest well-formed prefix.
inline std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t word;
    while (at + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080u) != 0) break;
      at += sizeof word;
    }
    if (at == text.size()) break;
    const std::size_t bytes = utf8_char_bytes(text.substr(at));
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

// Returns how many bytes at the end of `text` begin a character that is not complete: 0 to 3.
constexpr std::size_t utf8_incomplete_tail(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  for (std::size_t tail = 1; tail <= 3 && tail <= text.size(); ++tail) {
    const std::size_t at = text.size() - tail;
    if ((byte(at) & 0xC0) == 0x80) continue;
    if (utf8_expected_bytes(byte(at)) <= tail) return 0;
    return tail == 1 || utf8_second_fits(byte(at), byte(at + 1)) ? tail : 0;
  }
  return 0;
}

}  // namespace pagoda::text

#include "structured/text_cursor.h"

#include <fmt/format.h>

#include "structured/string_automaton.h"

namespace pagoda::structured {
namespace {

std::optional<std::uint32_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

bool TextCursor::take(char expected) {
  if (at_end() || text_[at_] != expected) return false;
  ++at_;
  return true;
}

bool TextCursor::take(std::string_view expected) {
  if (!text_.substr(at_).starts_with(expected)) return false;
  at_ += expected.size();
  return true;
}

std::uint32_t TextCursor::take_code_point() {
  const auto lead = static_cast<unsigned char>(text_[at_++]);
  if (lead < 0x80) return lead;
  const std::size_t tail = lead < 0xE0 ? 1 : (lead < 0xF0 ? 2 : 3);
  std::uint32_t code = lead & (0x3FU >> tail);
  for (std::size_t i = 0; i < tail && !at_end(); ++i) {
    code = (code << 6) | (static_cast<unsigned char>(text_[at_++]) & 0x3FU);
  }
  return code;
}

std::optional<std::uint32_t> TextCursor::take_number() {
  std::uint32_t value = 0;
  std::size_t digits = 0;
  while (peek() >= '0' && peek() <= '9' && digits < 8) {
    value = value * 10 + static_cast<std::uint32_t>(peek() - '0');
    skip();
    ++digits;
  }
  if (digits == 0 || digits > 7) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> TextCursor::take_hex(std::size_t digits) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const std::optional<std::uint32_t> digit = hex_digit(peek(i));
    if (!digit) return std::nullopt;
    value = value * 16 + *digit;
  }
  skip(digits);
  return value;
}

Error TextCursor::error(std::string_view what) const {
  return {ErrorCode::kInvalidArgument, fmt::format("at byte {}: {}", at_, what)};
}

bool is_utf8(std::string_view text) {
  std::uint8_t state = kBody;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // Bytes that a JSON string would escape are characters here.
    if (byte < 0x80) {
      if (state != kBody) return false;
      continue;
    }
    state = string_automaton().next[state][byte];
    if (state >= kStringStates) return false;
  }
  return state == kBody;
}

}  // namespace pagoda::structured

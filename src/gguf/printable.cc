#include "gguf/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace pagoda::gguf {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

// Returns the bytes of the well-formed UTF-8 character at the front of `text`; 0 when there is
// none.
std::size_t character_bytes(std::string_view text) {
  const std::uint8_t lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte_at(text, at) & 0xC0) != 0x80) return 0;
  }
  const std::uint8_t second = byte_at(text, 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool beyond = lead == 0xF4 && second > 0x8F;
  const bool control = lead == 0xC2 && second < 0xA0;  // U+0080 to U+009F
  return overlong || surrogate || beyond || control ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = character_bytes(text.substr(at));
    if (at + (length == 0 ? 1 : length) > bytes_max) return result + "\u2026";
    const std::uint8_t byte = byte_at(text, at);
    if (length == 1 && byte == '\n') {
      result += "\\n";
    } else if (length == 1 && byte == '\t') {
      result += "\\t";
    } else if (length == 1 && byte == '\\') {
      result += "\\\\";
    } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", byte);
    } else {
      result += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return result;
}

}  // namespace pagoda::gguf

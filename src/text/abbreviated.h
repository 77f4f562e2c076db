// The beginning of a text, for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pagoda::text {

// At most `bytes_max` bytes of it, and "…" where that is not all; characters are not cut.
inline std::string abbreviated(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace pagoda::text

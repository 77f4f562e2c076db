// Shortens a text to the room that a message has.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/utf8.h"

namespace pagoda::text {

// Returns at most `bytes_max` bytes of the text. A longer text loses its middle, so that both its
// subject and its statement stay. Characters are not cut.
inline std::string abbreviated(std::string_view text, std::size_t bytes_max) {
  constexpr std::string_view kGap = " … ";
  if (text.size() <= bytes_max) return std::string(text);
  const std::size_t room = bytes_max > kGap.size() ? bytes_max - kGap.size() : 0;
  std::string_view head = text.substr(0, room - room / 4);
  head.remove_suffix(utf8_incomplete_tail(head));
  std::string_view tail = text.substr(text.size() - room / 4);
  while (!tail.empty() && (static_cast<unsigned char>(tail.front()) & 0xC0U) == 0x80U) {
    tail.remove_prefix(1);
  }
  std::string both(head);
  if (bytes_max >= kGap.size()) both += kGap;
  both += tail;
  return both;
}

}  // namespace pagoda::text

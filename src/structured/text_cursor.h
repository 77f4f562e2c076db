// TextCursor reads a text of code points from front to back, for the readers of small languages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pagoda::structured {

class TextCursor {
 public:
  // The text must be UTF-8; see is_utf8.
  explicit TextCursor(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  std::size_t position() const { return at_; }
  // The byte at `ahead`; 0 behind the end.
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void skip(std::size_t bytes = 1) { at_ += bytes; }
  bool take(char expected);
  bool take(std::string_view expected);
  // Takes one code point; there must be one.
  std::uint32_t take_code_point();
  // Takes a number of at most 7 digits.
  std::optional<std::uint32_t> take_number();
  // Takes exactly `digits` hexadecimal digits.
  std::optional<std::uint32_t> take_hex(std::size_t digits);

  // "at byte 12: <what>"
  Error error(std::string_view what) const;

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_utf8(std::string_view text);

}  // namespace pagoda::structured

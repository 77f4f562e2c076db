#include "text/jinja/string_literal.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

class Escapes {
 public:
  Escapes(std::string_view body, SourcePosition place) : body_(body), place_(place) {}

  std::string resolve() {
    while (at_ < body_.size()) {
      if (body_[at_] != '\\' || at_ + 1 == body_.size()) {
        text_ += body_[at_++];
      } else {
        at_ += 2;
        resolve_one(body_[at_ - 1]);
      }
    }
    return std::move(text_);
  }

 private:
  void resolve_one(char letter) {
    constexpr std::string_view kLetters = "\\'\"abfnrtv";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const std::size_t simple = kLetters.find(letter);
    if (simple != std::string_view::npos) {
      text_ += kMeanings[simple];
    } else if (letter == 'x') {
      append_code(digits(2, 2, 16));
    } else if (letter == 'u') {
      append_code(code_unit());
    } else if (letter == 'U') {
      append_code(digits(8, 8, 16));
    } else if (letter >= '0' && letter <= '7') {
      --at_;
      append_code(digits(1, 3, 8));
    } else if (letter != '\n') {
      text_ += '\\';
      --at_;
      text_ += body_[at_++];
    }
  }

  // A pair of surrogates is one character.
  std::uint32_t code_unit() {
    const std::uint32_t high = digits(4, 4, 16);
    if (high < 0xD800 || high > 0xDBFF || !body_.substr(at_).starts_with("\\u")) return high;
    at_ += 2;
    const std::uint32_t low = digits(4, 4, 16);
    if (low < 0xDC00 || low > 0xDFFF) fail("a lone surrogate in a string", place_);
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }

  std::uint32_t digits(std::size_t least, std::size_t most, int base) {
    const std::string_view rest = body_.substr(at_, most);
    std::uint32_t value = 0;
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), value, base);
    const auto count = static_cast<std::size_t>(parsed.ptr - rest.data());
    if (parsed.ec != std::errc{} || count < least) fail("a broken escape in a string", place_);
    at_ += count;
    return value;
  }

  void append_code(std::uint32_t code) {
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
      fail(fmt::format("U+{:04X} in a string is no character", code), place_);
    }
    append_utf8(text_, code);
  }

  std::string_view body_;
  SourcePosition place_;
  std::size_t at_ = 0;
  std::string text_;
};

}  // namespace

std::string resolve_escapes(std::string_view body, SourcePosition place) {
  return Escapes(body, place).resolve();
}

}  // namespace pagoda::text::jinja

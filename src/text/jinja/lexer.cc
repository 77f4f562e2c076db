#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/ascii.h"
#include "text/jinja/string_literal.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

bool is_name_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

// Every newline becomes "\n"; one at the end is dropped.
std::string normalise(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source[at] == '\r') {
      text += '\n';
      if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
    } else {
      text += source[at];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : normalised_(normalise(source)), source_(normalised_) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) lex_data();
    add(TokenKind::kEnd, {}, at_);
    return std::move(tokens_);
  }

 private:
  bool looking_at(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  // Continues from the offset of the last call, so that ascending offsets cost one pass.
  SourcePosition place_of(std::size_t offset) {
    if (offset < counted_) {
      counted_ = 0;
      place_ = {};
    }
    for (; counted_ < offset; ++counted_) {
      const auto byte = static_cast<unsigned char>(source_[counted_]);
      if (byte == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((byte & 0xC0U) != 0x80U) {
        ++place_.column;
      }
    }
    return place_;
  }

  void add(TokenKind kind, std::string text, std::size_t offset) {
    tokens_.push_back({kind, std::move(text), place_of(offset)});
  }

  void add_data(std::size_t begin, std::size_t end) {
    if (end > begin) add(TokenKind::kData, std::string(source_.substr(begin, end - begin)), begin);
  }

  // Returns where the text [begin, tag) ends once the tag has stripped white space before it.
  // `sign` follows the tag's opening; prints leave indentation alone.
  std::size_t text_end(std::size_t begin, std::size_t tag, char sign, bool is_print) const {
    const std::string_view text = source_.substr(begin, tag - begin);
    if (sign == '-') return tag - trailing_space_bytes(text);
    if (sign == '+' || is_print) return tag;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    const bool whole_line = newline != std::string_view::npos || line_starting_;
    const std::string_view indent = text.substr(line);
    return whole_line && leading_space_bytes(indent) == indent.size() ? begin + line : tag;
  }

  char sign_at(std::size_t offset) const {
    const char sign = offset < source_.size() ? source_[offset] : '\0';
    return sign == '-' || sign == '+' ? sign : '\0';
  }

  void skip_space() { at_ += leading_space_bytes(source_.substr(at_)); }

  // Consumes "-%}" with the white space after it, "+%}", or "%}" with the newline after it.
  bool skip_close(std::string_view close, bool trims_newline) {
    const char sign = sign_at(at_);
    const bool signed_close = sign != '\0' && source_.substr(at_ + 1).starts_with(close);
    if (sign == '+' && !trims_newline) return false;
    if (!signed_close && !looking_at(close)) return false;
    at_ += close.size() + (signed_close ? 1 : 0);
    if (signed_close && sign == '-') {
      skip_space();
    } else if (!signed_close && trims_newline && looking_at("\n")) {
      ++at_;
    }
    line_starting_ = source_[at_ - 1] == '\n';
    return true;
  }

  void lex_data() {
    const std::size_t begin = at_;
    std::size_t tag = source_.find('{', at_);
    while (tag != std::string_view::npos &&
           (tag + 1 == source_.size() ||
            std::string_view("{%#").find(source_[tag + 1]) == std::string_view::npos)) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string_view::npos) {
      add_data(begin, source_.size());
      at_ = source_.size();
      return;
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    add_data(begin, text_end(begin, tag, sign, kind == '{'));
    at_ = tag + (sign == '\0' ? 2 : 3);
    line_starting_ = false;
    if (kind == '#') {
      skip_comment(tag);
    } else if (kind == '{') {
      lex_code(tag, TokenKind::kPrintBegin, TokenKind::kPrintEnd, "}}");
    } else if (!lex_raw(tag)) {
      lex_code(tag, TokenKind::kBlockBegin, TokenKind::kBlockEnd, "%}");
    }
  }

  void skip_comment(std::size_t tag) {
    const std::size_t close = source_.find("#}", at_);
    if (close == std::string_view::npos) fail("a comment that is never closed", place_of(tag));
    const bool has_sign = close > at_ && sign_at(close - 1) != '\0';
    at_ = close - (has_sign ? 1 : 0);
    skip_close("#}", true);
  }

  // Lexes "{% raw %}" up to "{% endraw %}" as data. Returns false when this tag is another one.
  bool lex_raw(std::size_t tag) {
    const std::size_t inside = at_;
    if (!skip_word("raw") || !skip_close("%}", false)) {
      at_ = inside;
      return false;
    }
    const std::size_t begin = at_;
    for (std::size_t end = source_.find("{%", at_); end != std::string_view::npos;
         end = source_.find("{%", end + 2)) {
      const char sign = sign_at(end + 2);
      at_ = end + (sign == '\0' ? 2 : 3);
      const bool starts_line = line_starting_;
      if (!skip_word("endraw") || !skip_close("%}", true)) continue;
      const bool starts_next = std::exchange(line_starting_, starts_line);
      add_data(begin, text_end(begin, end, sign, false));
      line_starting_ = starts_next;
      return true;
    }
    fail("a raw block that is never closed", place_of(tag));
  }

  bool skip_word(std::string_view word) {
    skip_space();
    if (!looking_at(word)) return false;
    at_ += word.size();
    skip_space();
    return true;
  }

  void lex_code(std::size_t tag, TokenKind begin, TokenKind end, std::string_view close) {
    add(begin, {}, tag);
    std::string open;  // brackets to be closed, last first
    while (true) {
      skip_space();
      const std::size_t offset = at_;
      if (at_ == source_.size())
        fail(fmt::format("a tag that is never closed with '{}'", close), place_of(tag));
      if (open.empty() && skip_close(close, close == "%}")) {
        add(end, {}, offset);
        return;
      }
      lex_token(open);
    }
  }

  void lex_token(std::string& open) {
    const char c = source_[at_];
    if (is_ascii_digit(c)) {
      lex_number();
    } else if (is_name_byte(c)) {
      const std::size_t begin = at_;
      while (at_ < source_.size() && is_name_byte(source_[at_])) ++at_;
      if (at_ - begin > kNameBytesMax) {
        fail_limit(fmt::format("a name of more than {} bytes", kNameBytesMax), place_of(begin));
      }
      add(TokenKind::kName, std::string(source_.substr(begin, at_ - begin)), begin);
    } else if (c == '\'' || c == '"') {
      lex_string(c);
    } else {
      lex_operator(open);
    }
  }

  void lex_string(char quote) {
    const std::size_t begin = at_++;
    while (at_ < source_.size() && source_[at_] != quote) at_ += source_[at_] == '\\' ? 2 : 1;
    if (at_ >= source_.size()) fail("a string that is never closed", place_of(begin));
    const SourcePosition place = place_of(begin);
    const std::string_view body = source_.substr(begin + 1, at_ - begin - 1);
    tokens_.push_back({TokenKind::kString, resolve_escapes(body, place), place});
    ++at_;
  }

  std::string take_digits() {
    std::string digits;
    while (at_ < source_.size() && (is_ascii_digit(source_[at_]) || source_[at_] == '_')) {
      if (source_[at_] != '_') digits += source_[at_];
      ++at_;
    }
    return digits;
  }

  void lex_number() {
    const std::size_t begin = at_;
    std::string text = take_digits();
    TokenKind kind = TokenKind::kInteger;
    if (looking_at(".") && at_ + 1 < source_.size() && is_ascii_digit(source_[at_ + 1])) {
      kind = TokenKind::kFloat;
      ++at_;
      text += '.' + take_digits();
    }
    if (looking_at("e") || looking_at("E")) {
      const char sign = sign_at(at_ + 1);
      const std::size_t digits = at_ + (sign == '\0' ? 1 : 2);
      if (digits < source_.size() && is_ascii_digit(source_[digits])) {
        kind = TokenKind::kFloat;
        at_ = digits;
        text += 'e';
        if (sign != '\0') text += sign;
        text += take_digits();
      }
    }
    add(kind, std::move(text), begin);
  }

  void lex_operator(std::string& open) {
    constexpr std::array<std::string_view, 26> kOperators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* const found = std::find_if(kOperators.begin(), kOperators.end(),
                                           [&](std::string_view text) { return looking_at(text); });
    if (found == kOperators.end()) {
      fail(fmt::format("unexpected character '{}'", source_[at_]), place_of(at_));
    }
    const char c = found->front();
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) fail(fmt::format("'{}' closes nothing", c), place_of(at_));
      if (open.back() != c) {
        fail(fmt::format("expected '{}', found '{}'", open.back(), c), place_of(at_));
      }
      open.pop_back();
    }
    add(TokenKind::kOperator, std::string(*found), at_);
    at_ += found->size();
  }

  std::string normalised_;
  std::string_view source_;
  std::size_t at_ = 0;
  bool line_starting_ = true;  // the next text is at the beginning of a line
  std::size_t counted_ = 0;    // bytes before place_
  SourcePosition place_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenise(std::string_view source) { return Lexer(source).run(); }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kPrintBegin:
      return "'{{'";
    case TokenKind::kPrintEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace pagoda::text::jinja

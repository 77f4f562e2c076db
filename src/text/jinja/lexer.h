// Splits a template into tokens, with Hugging Face's white space settings: trim_blocks and
// lstrip_blocks on, one newline at the end dropped, "-" and "+" inside tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/fault.h"

namespace pagoda::text::jinja {

// The limit makes looking up a name one step of work; longer names have no use.
inline constexpr std::size_t kNameBytesMax = 256;

enum class TokenKind : std::uint8_t {
  kData,  // text between tags
  kPrintBegin,
  kPrintEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  // the value, with escapes resolved
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  std::string text;
  SourcePosition place;
};

// `source` is well-formed UTF-8. Throws Fault. The last token is kEnd.
std::vector<Token> tokenise(std::string_view source);

// Describes a token for messages: "name 'foo'", "end of statement block".
std::string describe(const Token& token);

}  // namespace pagoda::text::jinja

// Unicode's property White_Space: the \s of regular expressions in Rust, and so of tokenizers.
#pragma once

namespace pagoda::text {

constexpr bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

}  // namespace pagoda::text

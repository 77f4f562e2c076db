// Classes of ASCII characters. Unlike <cctype> they depend on no locale and take any char.
#pragma once

namespace pagoda {

constexpr bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace pagoda

// Escapes text from a file for a message or a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pagoda::gguf {

// Control bytes and bytes that are not UTF-8 become \xNN, newline \n, tab \t, backslash \\; text
// longer than `bytes_max` is cut at a character and ends in an ellipsis. The result is UTF-8.
std::string printable(std::string_view text, std::size_t bytes_max);

}  // namespace pagoda::gguf

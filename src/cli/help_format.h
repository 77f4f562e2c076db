// The help of commands: CLI11's order in lines of at most 100 columns, without its shorthand.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace pagoda::cli {

inline constexpr std::size_t kHelpColumns = 100;

// For a program: the commands that are added to it take it over.
std::shared_ptr<CLI::FormatterBase> make_help_format();

// The heading of the flags that stand first, wherever they were added.
inline constexpr const char* kUsedMost = "Used most";

// Breaks lines between words, so that they end by column kHelpColumns. `text` begins at column
// `begin` of its line; the lines below it are indented by `indent`. A word that is longer stays
// whole.
std::string wrapped(std::string_view text, std::size_t begin, std::size_t indent);

}  // namespace pagoda::cli

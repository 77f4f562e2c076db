#include "cli/flag_spelling.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace pagoda::cli {

std::string with_typed_name(const std::string& message, const CLI::App& command,
                            const std::vector<std::string>& words) {
  const std::size_t end = message.find(": ");
  const std::string named = message.substr(0, end);
  const CLI::Option* const option =
      named.starts_with("--") ? command.get_option_no_throw(named) : nullptr;
  if (end == message.npos || option == nullptr) return message;
  const auto is_typed = [&](const std::string& flag) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return word.substr(0, word.find('=')) == flag;
    });
  };
  if (is_typed(named)) return message;
  for (const std::string& other : option->get_lnames()) {
    if (is_typed("--" + other)) return message + " (given as --" + other + ")";
  }
  return message;
}

}  // namespace pagoda::cli

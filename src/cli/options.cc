#include "cli/options.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace pagoda::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTwoLetterFlags = {{
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-np", "--max-num-seqs"},
}};

}  // namespace

std::string environment_name(const std::string& long_flag) {
  std::string name = "PAGODA_";
  for (const char c : long_flag.substr(long_flag.find_first_not_of('-'))) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string counted(std::uint64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string beyond_training(std::uint64_t context, std::uint64_t trained) {
  return fmt::format("--max-model-len {} is beyond the {} tokens the model was trained on", context,
                     trained);
}

std::vector<std::string> with_long_flags(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::string& word : words) {
    if (word == "--") break;
    for (const auto& [two_letters, long_flag] : kTwoLetterFlags) {
      if (word == two_letters) word = long_flag;
    }
  }
  return words;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n\"'\\$`&|;<>()*?[]#~!{}") == std::string::npos;
    std::string quoted = word;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) {
      quoted.replace(at, 1, "'\\''");
    }
    if (!line.empty()) line += ' ';
    line += plain ? word : "'" + quoted + "'";
  }
  return line;
}

}  // namespace pagoda::cli

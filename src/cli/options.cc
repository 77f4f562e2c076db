#include "cli/options.h"

#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace pagoda::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kTwoLetterFlags = {{
    {"-ctk", "--cache-type-k"},
    {"-md", "--model-draft"},
    {"-ctv", "--cache-type-v"},
    {"-np", "--max-num-seqs"},
    {"-tp", "--tensor-parallel-size"},
}};

}  // namespace

std::string environment_name(const std::string& long_flag) {
  std::string name = "PAGODA_";
  for (const char c : long_flag.substr(long_flag.find_first_not_of('-'))) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string_view two_letter_flag(std::string_view long_flag) {
  for (const auto& [two_letters, name] : kTwoLetterFlags) {
    if (name == long_flag) return two_letters;
  }
  return {};
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

}  // namespace pagoda::cli

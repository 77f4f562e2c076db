#include "cli/options.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace pagoda::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTwoLetterFlags = {{
    {"-ctk", "--kv-cache-dtype"},
    {"-ctv", "--kv-cache-dtype"},
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

void add_model_option(const CommandSpec& command, std::string& model) {
  command.add_option(
      "-m,--model,MODEL", model,
      "a GGUF file or a Hugging Face folder (default: the default model in the cache folder)");
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

}  // namespace pagoda::cli

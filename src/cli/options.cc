#include "cli/options.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <string_view>
#include <utility>

#include "cli/field_flags.h"

namespace pagoda::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTwoLetterFlags = {{
    {"-ctk", "--kv-cache-dtype"},
    {"-ctv", "--kv-cache-dtype"},
    {"-np", "--max-num-seqs"},
}};

// Flags without a variable: PAGODA_KERNELS names the kernel set of every command, where
// `inspect --kernels` lists the sets.
bool has_environment_variable(const CLI::Option& option) {
  if (option.get_lnames().empty()) return false;
  const std::string& name = option.get_lnames().front();
  return name != "help" && name != "kernels";
}

}  // namespace

std::string environment_name(const std::string& long_flag) {
  std::string name = "PAGODA_";
  for (const char c : long_flag.substr(long_flag.find_first_not_of('-'))) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

void add_environment_variables(CLI::App& command) {
  for (CLI::Option* const option : command.get_options()) {
    if (has_environment_variable(*option))
      option->envname(environment_name(option->get_lnames().front()));
  }
  for (CLI::App* const below : command.get_subcommands({})) add_environment_variables(*below);
}

void add_model_option(CLI::App& command, std::string& model) {
  command.add_option("-m,--model,MODEL", model,
                     "model file (GGUF; default: the default model in the cache folder)");
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

void print_error(const std::string& message) {
  fmt::print(stderr, "error: {}\n", with_flags(message));
}
void print_warning(const std::string& message) {
  fmt::print(stderr, "warning: {}\n", with_flags(message));
}

}  // namespace pagoda::cli

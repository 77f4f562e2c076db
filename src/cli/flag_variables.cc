#include "cli/flag_variables.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "cli/flags.h"
#include "cli/nearest.h"
#include "cli/options.h"

namespace pagoda::cli {
namespace {

constexpr std::string_view kVariablePrefix = "PAGODA_";

// Variables that are no flag's: of the program first, then of its tests and tools.
constexpr auto kOtherVariables = std::to_array<std::string_view>({
    "PAGODA_KERNELS",
    "PAGODA_MODEL",
    "PAGODA_MODELS",
    "PAGODA_STAND_IN_MODEL",
    "PAGODA_BINARY",
    "PAGODA_BUILT_WITH_REDIS",
    "PAGODA_FLAT_REQUESTS",
    "PAGODA_MORE_VOCABULARIES",
    "PAGODA_OS_RELEASE",
    "PAGODA_PAGE_IMAGE",
    "PAGODA_REQUIRE_GPU",
    "PAGODA_SANITIZE_SECONDS",
    "PAGODA_SIM_SEED",
    "PAGODA_SIM_SEEDS",
    "PAGODA_SKIPS_FILE",
    "PAGODA_SOURCE_DIR",
    "PAGODA_TEST_NAME",
});

// A flag, and one that says the same for more.
struct Overridden {
  const char* flag;
  const char* by;
};
constexpr std::array kOverridden = {Overridden{"--cache-type-k", "--kv-cache-dtype"},
                                    Overridden{"--cache-type-v", "--kv-cache-dtype"},
                                    Overridden{"--kv-host-size", "--kv-offloading-size"},
                                    Overridden{"--kv-offloading-size", "--kv-host-size"}};

bool is_given(const CLI::Option& option, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    const bool has_glued_value = word.size() > 2 && word[0] == '-' && word[1] != '-';  // "-c8192"
    return option.check_name(word.substr(0, word.find('='))) ||
           (has_glued_value && option.check_name(word.substr(0, 2)));
  });
}

// Returns the first refusal of the option's validators, or an empty text. CLI11 does not tell how
// many validators there are.
std::string refusal_of(CLI::Option& option, std::string value) {
  try {
    for (int index = 0;; ++index) {
      const std::string refusal = (*option.get_validator(index))(value);
      if (!refusal.empty()) return refusal;
    }
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
}

// Flags without a variable: PAGODA_KERNELS names the kernel set of every command, where
// `inspect --kernels` lists the sets.
bool has_variable(const CLI::Option& option) {
  if (option.get_lnames().empty()) return false;
  const std::string& name = option.get_lnames().front();
  return name != "help" && name != "version" && name != "kernels";
}

// The known name that is nearest. The prefix, which all share, would make any two alike.
std::string meant_variable(std::string_view name, std::span<const std::string> known) {
  std::vector<std::string> rests;
  for (const std::string& each : known) rests.push_back(each.substr(kVariablePrefix.size()));
  const std::optional<std::string> meant = nearest(name.substr(kVariablePrefix.size()), rests);
  return meant ? fmt::format(" (did you mean {}{}?)", kVariablePrefix, *meant) : "";
}

}  // namespace

void add_variables(CLI::App& command) {
  for (CLI::Option* const option : command.get_options()) {
    if (has_variable(*option)) option->envname(environment_name(option->get_lnames().front()));
  }
  for (CLI::App* const below : command.get_subcommands({})) add_variables(*below);
}

void drop_overridden_variables(CLI::App& command, const std::vector<std::string>& words) {
  for (const Overridden& each : kOverridden) {
    CLI::Option* const option = command.get_option_no_throw(each.flag);
    const CLI::Option* const by = command.get_option_no_throw(each.by);
    if (option != nullptr && by != nullptr && is_given(*by, words)) option->envname("");
  }
  for (CLI::App* const below : command.get_subcommands({})) {
    drop_overridden_variables(*below, words);
  }
}

std::string with_variable(const std::string& message, CLI::App& command) {
  const std::size_t colon = message.find(": ");
  if (colon == std::string::npos) return message;
  for (CLI::Option* const option : command.get_options()) {
    const bool is_named = option->get_name() == message.substr(0, colon);
    if (is_named && Flag(option).is_from_environment()) {
      return option->get_envname() + message.substr(colon);
    }
  }
  return message;
}

std::string refused_variable(CLI::App& command, const std::vector<std::string>& words) {
  if (command.get_help_ptr() != nullptr && is_given(*command.get_help_ptr(), words)) return {};
  for (CLI::Option* const option : command.get_options()) {
    const char* const value =
        option->get_envname().empty() ? nullptr : std::getenv(option->get_envname().c_str());
    const bool is_list = option->get_items_expected_max() > 1;
    if (value == nullptr || *value == '\0' || is_list || is_given(*option, words)) continue;
    const std::string refusal = refusal_of(*option, value);
    if (!refusal.empty()) return fmt::format("{}: {}", option->get_envname(), refusal);
  }
  return {};
}

std::vector<std::string> given_flags(const CLI::App& command,
                                     const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    const std::string& variable = option->get_envname();
    const bool is_set = !variable.empty() && std::getenv(variable.c_str()) != nullptr;
    const bool is_typed = is_given(*option, words);
    if (!is_set && !is_typed) continue;
    if (!is_typed) names.push_back(variable);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> variables_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    if (has_variable(*option)) names.push_back(environment_name(option->get_lnames().front()));
  }
  for (const CLI::App* const below : command.get_subcommands({})) {
    const std::vector<std::string> more = variables_of(*below);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

std::vector<std::string> unknown_variables(std::span<const char* const> environment,
                                           std::span<const std::string> known) {
  std::vector<std::string> warnings;
  for (const std::string_view entry : environment) {
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kVariablePrefix)) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (std::find(kOtherVariables.begin(), kOtherVariables.end(), name) != kOtherVariables.end()) {
      continue;
    }
    warnings.push_back(
        fmt::format("the environment variable {} is not known, and changes nothing{}", name,
                    meant_variable(name, known)));
  }
  return warnings;
}

}  // namespace pagoda::cli

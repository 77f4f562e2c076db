#include "cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <type_traits>

#include "base/byte_size.h"
#include "base/result.h"
#include "cli/nearest.h"
#include "cli/options.h"

namespace pagoda::cli {
namespace {

// A limit as people write it: without an exponent up to ten digits.
template <class Number>
std::string limit_text(Number number) {
  if constexpr (std::is_floating_point_v<Number>) {
    return fmt::format("{:.10g}", number);
  } else {
    return fmt::format("{}", number);
  }
}

// Refuses what is no number, and numbers outside; NaN is outside.
template <class Number>
void add_range(CLI::Option& option, Number least, Number most) {
  option.type_name(fmt::format("{}..{}", limit_text(least), limit_text(most)));
  option.check([least, most](const std::string& text) -> std::string {
    using CLI::detail::lexical_cast;
    Number number{};
    if (lexical_cast(text, number) && number >= least && number <= most) return {};
    return fmt::format("{} is not a {} from {} to {}", text,
                       std::is_floating_point_v<Number> ? "number" : "whole number",
                       limit_text(least), limit_text(most));
  });
}

// Refuses other words, with the nearest of these.
void add_words(CLI::Option& option, const std::vector<std::string>& words) {
  option.type_name(fmt::format("{}", fmt::join(words, "|")));
  option.check([words](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return {};
    const std::optional<std::string> meant = nearest(text, words);
    return fmt::format("{} is not one of {}{}", text, fmt::join(words, ", "),
                       meant ? fmt::format(" (did you mean {}?)", *meant) : "");
  });
}

// An error of the parser's in the words of our own.
std::string plain_words(const CLI::ParseError& error) {
  const std::string message = error.what();
  const std::string name = message.substr(0, message.find(": "));
  const auto has = [&](std::string_view part) { return message.find(part) != std::string::npos; };
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    // The second spelling is that of CLI11 2.6.
    if (has(": At Most 1 ") || has(": At most 1 "))
      return fmt::format("{}: is given more than once", name);
    if (message.ends_with(" missing")) return fmt::format("{}: its value is missing", name);
  }
  constexpr std::string_view kConversion = "Could not convert: ";
  const std::size_t equals = message.find(" = ");
  if (message.starts_with(kConversion) && equals != std::string::npos) {
    const std::string flag = message.substr(kConversion.size(), equals - kConversion.size());
    return fmt::format("{}: {} is not a number", flag, message.substr(equals + 3));
  }
  return message == "A subcommand is required" ? "a command is missing" : message;
}

// CLI11 from 2.5 on would fill lines of descriptions and examples anew.
template <class Formatter>
void keep_lines(Formatter& formatter) {
  if constexpr (requires { formatter.enable_footer_formatting(false); }) {
    formatter.enable_description_formatting(false);
    formatter.enable_footer_formatting(false);
  }
}

CLI::App& chosen_command(CLI::App& app) {
  CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return *chosen;
}

// An error about a value that a variable gave names the variable: "--port: …" becomes
// "PAGODA_PORT: …".
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

// The program, the command that the first word names, the one below it that the second does, ….
std::vector<CLI::App*> named_commands(CLI::App& app, const std::vector<std::string>& words) {
  std::vector<CLI::App*> named = {&app};
  for (const std::string& word : words) {
    const std::vector<CLI::App*> below = named.back()->get_subcommands({});
    const auto found = std::find_if(below.begin(), below.end(), [&](const CLI::App* candidate) {
      return candidate->get_name() == word;
    });
    if (found == below.end()) break;
    named.push_back(*found);
  }
  return named;
}

bool is_given(const CLI::Option& option, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return option.check_name(word.substr(0, word.find('=')));
  });
}

// What the option's validators say of a value; the parser does not tell how many they are.
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

// The error about the first variable whose value is refused, or nothing: newer versions of the
// parser leave such a value out without a word.
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

// Flags without a variable: PAGODA_KERNELS names the kernel set of every command, where
// `inspect --kernels` lists the sets.
bool has_variable(const CLI::Option& option) {
  if (option.get_lnames().empty()) return false;
  const std::string& name = option.get_lnames().front();
  return name != "help" && name != "kernels";
}

void add_variables(CLI::App& command) {
  for (CLI::Option* const option : command.get_options()) {
    if (has_variable(*option)) option->envname(environment_name(option->get_lnames().front()));
  }
  for (CLI::App* const below : command.get_subcommands({})) add_variables(*below);
}

// Words that could have stood where a wrong one does: flags and commands of the command.
std::vector<std::string> possible_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* const command : app.get_subcommands({})) {
    words.push_back(command->get_name());
  }
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

}  // namespace

const Flag& Flag::range(int least, int most) const {
  add_range(*option_, least, most);
  return *this;
}

const Flag& Flag::range(std::uint32_t least, std::uint32_t most) const {
  add_range(*option_, least, most);
  return *this;
}

const Flag& Flag::range(std::uint64_t least, std::uint64_t most) const {
  add_range(*option_, least, most);
  return *this;
}

const Flag& Flag::range(double least, double most) const {
  add_range(*option_, least, most);
  return *this;
}

const Flag& Flag::among(const std::vector<std::string>& values) const {
  add_words(*option_, values);
  return *this;
}

const Flag& Flag::byte_size() const {
  option_->type_name("SIZE");
  option_->check([](const std::string& text) -> std::string {
    const Result<std::uint64_t> parsed = parse_byte_size(text);
    return parsed.ok() ? std::string() : parsed.error().message;
  });
  return *this;
}

const Flag& Flag::check(std::function<std::string(const std::string&)> check) const {
  option_->check(std::move(check));
  return *this;
}

const Flag& Flag::required() const {
  option_->required();
  return *this;
}

const Flag& Flag::delimiter(char separator) const {
  option_->delimiter(separator);
  return *this;
}

const Flag& Flag::one_value_each() const {
  option_->allow_extra_args(false);
  // One less than what CLI11 takes for a list, whose help would end with "...".
  option_->expected(1, CLI::detail::expected_max_vector_size - 1);
  return *this;
}

const Flag& Flag::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

const Flag& Flag::description(const std::string& text) const {
  option_->description(text);
  return *this;
}

const Flag& Flag::excludes(const Flag& other) const {
  option_->excludes(other.option_);
  return *this;
}

const Flag& Flag::excludes(const std::string& other) const {
  option_->excludes(other);
  return *this;
}

const Flag& Flag::needs(const Flag& other) const {
  option_->needs(other.option_);
  return *this;
}

std::size_t Flag::count() const { return option_->count(); }
bool Flag::is_on() const { return count() > 0 && option_->as<bool>(); }

bool Flag::is_from_environment() const {
  const char* const value = std::getenv(option_->get_envname().c_str());
  return value != nullptr && count() == 1 && option_->results().front() == value;
}

void Flag::clear() const { option_->clear(); }

CommandSpec CommandSpec::add_subcommand(const std::string& name,
                                        const std::string& description) const {
  return CommandSpec(app_->add_subcommand(name, description));
}

void CommandSpec::require_subcommand() const { app_->require_subcommand(1); }
void CommandSpec::group(const std::string& name) const { app_->option_defaults()->group(name); }
void CommandSpec::footer(const std::string& text) const { app_->footer(text); }
void CommandSpec::callback(std::function<void()> action) const {
  app_->callback(std::move(action));
}

Flag CommandSpec::add_option(const std::string& names, std::string& value,
                             const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, std::uint16_t& value,
                             const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, std::uint32_t& value,
                             const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, std::uint64_t& value,
                             const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, int& value, const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, float& value,
                             const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, double& value,
                             const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, std::optional<double>& value,
                             const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, std::optional<std::uint32_t>& value,
                             const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, std::optional<std::uint64_t>& value,
                             const std::string& help) const {
  return Flag(app_->add_option(names, value, help));
}

Flag CommandSpec::add_option(const std::string& names, std::vector<std::string>& values,
                             const std::string& help) const {
  return Flag(app_->add_option(names, values, help));
}

Flag CommandSpec::add_option(const std::string& names, std::vector<std::uint32_t>& values,
                             const std::string& help) const {
  return Flag(app_->add_option(names, values, help));
}

Flag CommandSpec::add_parsed(const std::string& names,
                             std::function<std::string(const std::string&)> read,
                             const std::string& help) const {
  const auto take = [names, read = std::move(read)](const std::string& text) {
    const std::string refusal = read(text);
    if (!refusal.empty()) throw CLI::ValidationError(names, refusal);
  };
  return Flag(app_->add_option_function<std::string>(names, take, help));
}

Flag CommandSpec::add_parsed_list(const std::string& names,
                                  std::function<std::string(const std::vector<std::string>&)> read,
                                  const std::string& help) const {
  const auto take = [names, read = std::move(read)](const std::vector<std::string>& texts) {
    const std::string refusal = read(texts);
    if (!refusal.empty()) throw CLI::ValidationError(names, refusal);
  };
  return Flag(app_->add_option_function<std::vector<std::string>>(names, take, help));
}

Flag CommandSpec::add_byte_size(const std::string& names, std::uint64_t& bytes,
                                const std::string& help, bool may_be_zero) const {
  const auto read = [&bytes, may_be_zero](const std::string& text) -> std::string {
    const Result<std::uint64_t> parsed = parse_byte_size(text);
    if (!parsed.ok()) return parsed.error().message;
    if (parsed.value() == 0 && !may_be_zero) return "must not be 0";
    bytes = parsed.value();
    return {};
  };
  return add_parsed(names, read, help).type_name("SIZE");
}

Flag CommandSpec::add_byte_size(const std::string& names, std::optional<std::uint64_t>& bytes,
                                const std::string& help) const {
  const auto read = [&bytes](const std::string& text) -> std::string {
    const Result<std::uint64_t> parsed = parse_byte_size(text);
    if (!parsed.ok()) return parsed.error().message;
    bytes = parsed.value();
    return {};
  };
  return add_parsed(names, read, help).type_name("SIZE");
}

Flag CommandSpec::add_numbered_choice(const std::string& names, std::function<void(int)> choose,
                                      const Choices& choices, const std::string& help) const {
  std::map<std::string, int> numbers;
  std::vector<std::string> words;
  for (const auto& [word, number] : choices) {
    numbers.emplace(word, number);
    words.push_back(word);
  }
  const auto take = [choose = std::move(choose), numbers](const std::string& word) {
    choose(numbers.at(word));
  };
  CLI::Option* const option = app_->add_option_function<std::string>(names, take, help);
  add_words(*option, words);
  return Flag(option);
}

Flag CommandSpec::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Flag(app_->add_flag(names, value, help));
}

Flag CommandSpec::add_flag(const std::string& names, const std::string& help) const {
  return Flag(app_->add_flag(names, help));
}

Flag CommandSpec::flag(const std::string& name) const { return Flag(app_->get_option(name)); }

void throw_required(const std::string& what) { throw CLI::RequiredError(what); }

CommandLine::CommandLine(const std::string& description, const std::string& name)
    : app_(std::make_unique<CLI::App>(description, name)) {
  keep_lines(*app_->get_formatter());
}

CommandLine::~CommandLine() = default;

CommandSpec CommandLine::root() const { return CommandSpec(app_.get()); }

void CommandLine::set_version(const std::string& text) const {
  app_->set_version_flag("--version", text);
}

void CommandLine::add_environment_variables(const std::vector<std::string>& words) const {
  for (CLI::App* const command : app_->get_subcommands({})) {
    const bool named = std::find(words.begin(), words.end(), command->get_name()) != words.end();
    if (named) add_variables(*command);
  }
}

CommandLine::Place CommandLine::place_of(const std::vector<std::string>& words) const {
  Place place;
  const std::vector<CLI::App*> commands = named_commands(*app_, words);
  for (std::size_t i = 1; i < commands.size(); ++i) {
    place.command += (place.command.empty() ? "" : " ") + commands[i]->get_name();
  }
  place.possible = possible_words(*commands.back());
  return place;
}

CommandLine::Outcome CommandLine::parse(std::vector<std::string> words) const {
  Outcome outcome;
  outcome.error = refused_variable(*named_commands(*app_, words).back(), words);
  if (!outcome.error.empty()) return outcome;
  std::reverse(words.begin(), words.end());  // CLI11 wants the last word first
  try {
    app_->parse(words);
  } catch (const CLI::Success& asked_for_text) {  // --help, --version
    outcome.exit_status = app_->exit(asked_for_text);
  } catch (const CLI::ParseError& error) {
    CLI::App& chosen = chosen_command(*app_);
    outcome.error = with_variable(plain_words(error), chosen);
    outcome.unknown = app_->remaining(true);
    outcome.possible = possible_words(chosen);
  }
  return outcome;
}

}  // namespace pagoda::cli

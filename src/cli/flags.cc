#include "cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <type_traits>

#include "base/byte_size.h"
#include "base/result.h"
#include "cli/flag_spelling.h"
#include "cli/flag_variables.h"
#include "cli/help_format.h"
#include "cli/nearest.h"
#include "cli/token_count.h"

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

// The same in the help, where 2^30 is easier to read than 1073741824.
template <class Number>
std::string short_limit(Number number) {
  if constexpr (std::is_unsigned_v<Number>) {
    constexpr Number kLeast = Number{1} << 16;
    if (number >= kLeast && std::has_single_bit(number)) {
      return fmt::format("2^{}", std::countr_zero(number));
    }
  }
  std::string text = limit_text(number);
  const std::size_t zero = text.find("e-0");  // 1e-06
  if (zero != std::string::npos) text.erase(zero + 2, 1);
  return text;
}

// Refuses what is no number, and numbers outside; NaN is outside.
template <class Number>
void add_range(CLI::Option& option, Number least, Number most) {
  option.type_name(fmt::format("{}..{}", short_limit(least), short_limit(most)));
  option.check([least, most](const std::string& text) -> std::string {
    using CLI::detail::lexical_cast;
    Number number{};
    if (lexical_cast(text, number) && number >= least && number <= most) return {};
    return fmt::format("{} is not a {} from {} to {}", text,
                       std::is_floating_point_v<Number> ? "number" : "whole number",
                       limit_text(least), limit_text(most));
  });
}

// Refuses other words, with the nearest of these, unless they have a form of which the last of the
// words shown is the name.
void add_words(CLI::Option& option, const std::vector<std::string>& words,
               const std::string& form = {},
               std::function<bool(const std::string&)> is_of_form = {}) {
  std::vector<std::string> shown = words;
  if (!form.empty()) shown.push_back(form);
  option.type_name(fmt::format("{}", fmt::join(shown, "|")));
  option.check([words, shown, is_of_form = std::move(is_of_form)](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    if (is_of_form && is_of_form(text)) return std::string();
    const std::optional<std::string> meant = nearest_value(text, words);
    return fmt::format("{} is not one of {}{}", text, fmt::join(shown, ", "),
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

CLI::App& chosen_command(CLI::App& app) {
  CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return *chosen;
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

// Does the word behind this one belong to it? Not where the value stands in the word: "--port=9".
bool takes_next_word(const CLI::App& command, const std::string& word) {
  const CLI::Option* const option = command.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_min() > 0;
}

// Calls `visit` with each word that stands where a flag may: neither a command, nor the value of a
// flag, nor behind "--". It may change the word.
template <class Words, class Visit>
void visit_flags(const CLI::App& command, std::size_t begin, Words& words, const Visit& visit) {
  for (std::size_t i = begin; i < words.size() && words[i] != "--"; ++i) {
    if (!words[i].starts_with('-')) continue;
    visit(i);
    if (takes_next_word(command, words[i])) ++i;
  }
}

bool has_flag(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name) != nullptr;
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

const Flag& Flag::token_count(std::uint64_t least, std::uint64_t most) const {
  range(least, most);
  // CLI11 lets the transformation that was added last go before every check.
  option_->transform(CLI::Validator(
      [](std::string& text) -> std::string {
        if (const auto tokens = parse_token_count(text)) text = fmt::format("{}", *tokens);
        return {};
      },
      std::string()));
  return *this;
}

const Flag& Flag::among(const std::vector<std::string>& values) const {
  add_words(*option_, values);
  return *this;
}

const Flag& Flag::among(const std::vector<std::string>& values, const std::string& form,
                        std::function<bool(const std::string&)> is_of_form) const {
  add_words(*option_, values, form, std::move(is_of_form));
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

const Flag& Flag::capacity() const {
  byte_size();
  option_->check([](const std::string& text) -> std::string {
    constexpr std::uint64_t kLeast = 1 << 16;
    constexpr std::uint64_t kGigabytesMax = 4096;
    const bool is_bare = text.find_first_not_of("0123456789") == std::string::npos;
    const Result<std::uint64_t> bytes = parse_byte_size(text);
    if (!is_bare || !bytes.ok() || bytes.value() == 0 || bytes.value() >= kLeast) return {};
    return fmt::format("{} is {} byte{}: did you mean {}{}?", text, text, text == "1" ? "" : "s",
                       text, bytes.value() <= kGigabytesMax ? "GiB" : "MiB");
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
void CommandSpec::used_most(std::initializer_list<const char*> names) const {
  for (const char* const name : names) app_->get_option(name)->group(kUsedMost);
}
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

std::string CommandLine::help() const { return app_->help(); }

void throw_required(const std::string& what) { throw CLI::RequiredError(what); }
void throw_usage(const std::string& message) { throw CLI::ValidationError(message); }

CommandLine::CommandLine(const std::string& description, const std::string& name)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->formatter(make_help_format());
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

std::vector<std::string> CommandLine::variables() const { return variables_of(*app_); }

std::vector<std::string> CommandLine::given(const std::vector<std::string>& words) const {
  return given_flags(*named_commands(*app_, words).back(), words);
}

std::vector<std::string> CommandLine::with_dashes(std::vector<std::string> words) const {
  const std::vector<CLI::App*> commands = named_commands(*app_, words);
  const CLI::App& command = *commands.back();
  visit_flags(command, commands.size() - 1, words, [&](std::size_t i) {
    std::string& word = words[i];
    const std::size_t end = std::min(word.find('='), word.size());
    std::string name = word.substr(0, end);
    if (!name.starts_with("--") || has_flag(command, name)) return;
    std::replace(name.begin(), name.end(), '_', '-');
    if (has_flag(command, name)) word.replace(0, end, name);
  });
  return words;
}

CommandLine::Place CommandLine::place_of(const std::vector<std::string>& words) const {
  Place place;
  const std::vector<CLI::App*> commands = named_commands(*app_, words);
  for (std::size_t i = 1; i < commands.size(); ++i) {
    place.command += (place.command.empty() ? "" : " ") + commands[i]->get_name();
  }
  place.possible = possible_words(*commands.back());
  visit_flags(*commands.back(), commands.size() - 1, words,
              [&](std::size_t i) { place.flags.push_back(i); });
  return place;
}

CommandLine::Outcome CommandLine::parse(std::vector<std::string> words) const {
  Outcome outcome;
  drop_overridden_variables(*app_, words);
  outcome.error = refused_variable(*named_commands(*app_, words).back(), words);
  if (!outcome.error.empty()) return outcome;
  const std::vector<std::string> typed = words;
  std::reverse(words.begin(), words.end());  // CLI11 wants the last word first
  try {
    app_->parse(words);
  } catch (const CLI::Success& asked_for_text) {  // --help, --version
    outcome.exit_status = app_->exit(asked_for_text);
  } catch (const CLI::ParseError& error) {
    CLI::App& chosen = chosen_command(*app_);
    outcome.error = with_typed_name(with_variable(plain_words(error), chosen), chosen, typed);
    outcome.unknown = app_->remaining(true);
    outcome.possible = possible_words(chosen);
  }
  return outcome;
}

}  // namespace pagoda::cli

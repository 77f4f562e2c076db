// The flags of a command, without the library that parses them: CLI11 is a header of templates that
// costs each file which includes it several seconds, so only flags.cc, flag_spelling.cc,
// flag_variables.cc and help_format.cc do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pagoda::cli {

// One flag of a command, or one of its positional words. Refers to what the command owns.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  // Values outside, and those that are no numbers, are refused; the help shows the range.
  const Flag& range(int least, int most) const;
  const Flag& range(std::uint32_t least, std::uint32_t most) const;
  const Flag& range(std::uint64_t least, std::uint64_t most) const;
  const Flag& range(double least, double most) const;
  // The same for a number of tokens, which may have a suffix: 8k is 8000, 8K is 8192
  // (token_count.h).
  const Flag& token_count(std::uint64_t least, std::uint64_t most) const;
  // Values that are none of these are refused; the help lists them.
  const Flag& among(const std::vector<std::string>& values) const;
  // The same, and values of a form that `is_of_form` knows, which the help names.
  const Flag& among(const std::vector<std::string>& values, const std::string& form,
                    std::function<bool(const std::string&)> is_of_form) const;
  // Refuses texts that are not a number of bytes such as 512MiB or 65536.
  const Flag& byte_size() const;
  // The same of memory or disk for a cache: a bare number so small that a unit was surely forgotten
  // ("8", where others count in GiB) is refused, too. 0 is not.
  const Flag& capacity() const;
  // Refuses a value for which `check` returns a reason.
  const Flag& check(std::function<std::string(const std::string&)> check) const;

  const Flag& required() const;
  // The values of a list may be separated by this character within one word.
  const Flag& delimiter(char separator) const;
  // Each value of a list needs the flag again, so that the word behind a value stays free.
  const Flag& one_value_each() const;
  // The help's word for the value, such as FILE.
  const Flag& type_name(const std::string& name) const;
  const Flag& description(const std::string& text) const;
  const Flag& excludes(const Flag& other) const;
  const Flag& excludes(const std::string& other) const;
  const Flag& needs(const Flag& other) const;

  // How often it was given.
  std::size_t count() const;
  // Returns whether a flag without a value was given, and not as "=false".
  bool is_on() const;
  // It was given once, by its environment variable.
  bool is_from_environment() const;
  // As if it had not been given.
  void clear() const;

 private:
  CLI::Option* option_;
};

// A subcommand, or the whole program. A handle: copies refer to the same command. Names are as
// CLI11 writes them: "-t,--threads", "MODEL", "--stream,!--no-stream". A value that is not given
// keeps what the variable holds, and the variable must outlive the parsing.
class CommandSpec {
 public:
  explicit CommandSpec(CLI::App* app) : app_(app) {}

  CommandSpec add_subcommand(const std::string& name, const std::string& description) const;
  void require_subcommand() const;
  // The heading of the help under which the flags that are added next stand.
  void group(const std::string& name) const;
  // Puts flags that were added under the heading that stands first in the help.
  void used_most(std::initializer_list<const char*> names) const;
  // Text below the flags in the help.
  void footer(const std::string& text) const;
  // Sets the action that runs once the command was chosen and all its flags were read.
  void callback(std::function<void()> action) const;

  Flag add_option(const std::string& names, std::string& value, const std::string& help) const;
  Flag add_option(const std::string& names, std::uint16_t& value, const std::string& help) const;
  Flag add_option(const std::string& names, std::uint32_t& value, const std::string& help) const;
  Flag add_option(const std::string& names, std::uint64_t& value, const std::string& help) const;
  Flag add_option(const std::string& names, int& value, const std::string& help) const;
  Flag add_option(const std::string& names, float& value, const std::string& help) const;
  Flag add_option(const std::string& names, double& value, const std::string& help) const;
  Flag add_option(const std::string& names, std::optional<double>& value,
                  const std::string& help) const;
  Flag add_option(const std::string& names, std::optional<std::uint32_t>& value,
                  const std::string& help) const;
  Flag add_option(const std::string& names, std::optional<std::uint64_t>& value,
                  const std::string& help) const;
  Flag add_option(const std::string& names, std::vector<std::string>& values,
                  const std::string& help) const;
  Flag add_option(const std::string& names, std::vector<std::uint32_t>& values,
                  const std::string& help) const;
  // The value goes to `read`, which returns why it is refused, or nothing.
  Flag add_parsed(const std::string& names, std::function<std::string(const std::string&)> read,
                  const std::string& help) const;
  Flag add_parsed_list(const std::string& names,
                       std::function<std::string(const std::vector<std::string>&)> read,
                       const std::string& help) const;
  // A number of bytes such as 512MiB; 0 where that may be.
  Flag add_byte_size(const std::string& names, std::uint64_t& bytes, const std::string& help,
                     bool may_be_zero) const;
  Flag add_byte_size(const std::string& names, std::optional<std::uint64_t>& bytes,
                     const std::string& help) const;

  // One of several words, each of which stands for a value of an enumeration.
  template <class Enum>
  Flag add_choice(const std::string& names, Enum& value,
                  std::initializer_list<std::pair<const char*, Enum>> choices,
                  const std::string& help) const {
    Choices numbers;
    for (const auto& [word, choice] : choices) numbers.emplace_back(word, static_cast<int>(choice));
    return add_numbered_choice(
        names, [&value](int number) { value = static_cast<Enum>(number); }, numbers, help);
  }

  Flag add_flag(const std::string& names, bool& value, const std::string& help) const;
  // One that is asked for by Flag::count().
  Flag add_flag(const std::string& names, const std::string& help) const;

  // A flag that was added before.
  Flag flag(const std::string& name) const;

 private:
  using Choices = std::vector<std::pair<std::string, int>>;
  Flag add_numbered_choice(const std::string& names, std::function<void(int)> choose,
                           const Choices& choices, const std::string& help) const;

  CLI::App* app_;
};

// Ends a command's callback with a usage error: what is missing is named.
[[noreturn]] void throw_required(const std::string& what);
// The same with a message of its own.
[[noreturn]] void throw_usage(const std::string& message);

// The program's command line.
class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& name);
  ~CommandLine();

  CommandSpec root() const;
  void set_version(const std::string& text) const;
  // Gives every long flag of the commands that are among the words, and of those below them, its
  // environment variable. CLI11 reads the variables of every command: those of one that was not
  // called would be held against its ranges all the same.
  void add_environment_variables(const std::vector<std::string>& words) const;

  // The variables of all flags of all commands.
  std::vector<std::string> variables() const;

  // The long names of the named command's flags that are among the words, or to which the
  // environment gives a value.
  std::vector<std::string> given(const std::vector<std::string>& words) const;

  // Flags of the named command that were typed with underscores for dashes, as vLLM takes them, in
  // their own spelling; everything else as it is.
  std::vector<std::string> with_dashes(std::vector<std::string> words) const;

  std::string help() const;

  // Where words lead before they are parsed: "bench serve" for {"bench", "serve", "--rate", "4"}.
  struct Place {
    std::string command;                // empty: the program itself
    std::vector<std::string> possible;  // its flags and the commands below it
    std::vector<std::size_t> flags;     // which words may be flags: they are nobody's values
  };
  Place place_of(const std::vector<std::string>& words) const;

  struct Outcome {
    std::optional<int> exit_status;     // where help or version was asked for, and is printed
    std::string error;                  // empty: the command was run
    std::vector<std::string> unknown;   // words that nothing took, of an error
    std::vector<std::string> possible;  // flags and commands that could have stood there
  };
  // Runs the callback of the command that the words name. Words are without the program's name.
  Outcome parse(std::vector<std::string> words) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace pagoda::cli

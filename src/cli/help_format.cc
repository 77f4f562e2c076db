#include "cli/help_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "cli/options.h"

namespace pagoda::cli {
namespace {

constexpr std::size_t kNameColumns = 30;

// Columns of UTF-8 text: bytes that begin a character.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// A name at the left, what it means at the right, or below where the name is long.
std::string row(const std::string& name, const std::string& meaning) {
  std::string text = "  " + name;
  if (meaning.empty()) return text + "\n";
  const std::size_t columns = columns_of(text);
  if (columns + 2 > kNameColumns) {
    text += "\n" + std::string(kNameColumns, ' ');
  } else {
    text.append(kNameColumns - columns, ' ');
  }
  return text + wrapped(meaning, kNameColumns, kNameColumns) + "\n";
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // a set of pointers has no order of its own
  return fmt::format("{}", fmt::join(names, ", "));
}

// CLI11 names what a value is by the type of its variable.
std::string value_name(const CLI::Option& option) {
  const std::string name = option.get_type_size() == 0 ? "" : option.get_type_name();
  return name == "UINT" || name == "INT" || name == "FLOAT" ? "N" : name;
}

// CLI11 from 2.5 on would fill lines of descriptions and examples anew.
template <class Formatter>
void keep_lines(Formatter& formatter) {
  if constexpr (requires { formatter.enable_footer_formatting(false); }) {
    formatter.enable_description_formatting(false);
    formatter.enable_footer_formatting(false);
  }
}

// Says by the command's first flag how variables are called; empty where it has none.
std::string variables_note(const CLI::App& app) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_envname().empty()) continue;
    return fmt::format("Every flag has an environment variable: --{} is {}.\n",
                       option->get_lnames().front(), option->get_envname());
  }
  return "";
}

// Moves the part of a help that begins with one heading before the part that begins with another.
void put_first(const std::string& heading, const std::string& first, std::string& text) {
  const std::size_t begin = text.find(heading);
  const std::size_t to = text.find(first);
  if (begin == std::string::npos || to == std::string::npos || to > begin) return;
  const std::size_t end = std::min(text.find("\n\n", begin + 2), text.size());
  const std::string part = text.substr(begin, end - begin);
  text.erase(begin, end - begin);
  text.insert(to, part);
}

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) {
      text.erase(at, 1);
    }
    while (text.ends_with("\n\n")) text.pop_back();
    put_first(fmt::format("\n\n{}:\n", kUsedMost),
              fmt::format("\n\n{}:\n", app->get_groups().front()), text);
    return text;
  }

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (is_positional) return option->get_name(true, false);
    std::vector<std::string> names;
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) {
      const std::string_view two_letters = two_letter_flag("--" + name);
      if (!two_letters.empty()) names.emplace_back(two_letters);
      names.push_back("--" + name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    if (is_positional && option->nonpositional()) {  // its flag says the rest
      return row(make_option_name(option, true), "as " + option->get_name());
    }
    std::string meaning = option->get_description();
    if (option->get_required()) meaning += " (required)";
    if (!option->get_needs().empty()) {
      meaning += fmt::format(" (with {})", names_of(option->get_needs()));
    }
    if (!option->get_excludes().empty()) {
      meaning += fmt::format(" (not with {})", names_of(option->get_excludes()));
    }
    const std::string value = is_positional ? "" : value_name(*option);
    return row(make_option_name(option, is_positional) + (value.empty() ? "" : " " + value),
               meaning);
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return row(command->get_display_name(true), command->get_description());
  }

  // Examples, which begin with blanks, are lines to be copied, and stay whole. An empty line comes
  // first: CLI11 from 2.4 on puts none behind subcommands.
  std::string make_footer(const CLI::App* app) const override {
    std::string text = "\n";
    const std::string footer = app->get_footer();
    std::string_view rest = footer;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      text += (line.starts_with("  ") ? std::string(line) : wrapped(line, 0, 0)) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return text + variables_note(*app);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> make_help_format() {
  auto format = std::make_shared<HelpFormat>();
  keep_lines(*format);
  return format;
}

std::string wrapped(std::string_view text, std::size_t begin, std::size_t indent) {
  std::string lines;
  std::size_t column = begin;
  bool is_first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t columns = columns_of(word);
    if (!is_first && column + 1 + columns > kHelpColumns) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += columns;
    is_first = false;
  }
  return lines;
}

}  // namespace pagoda::cli

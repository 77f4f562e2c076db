// The whole command line: which subcommands there are, and what a wrong word is answered with.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/commands.h"
#include "cli/field_flags.h"
#include "cli/foreign_flags.h"
#include "cli/nearest.h"
#include "cli/options.h"
#include "terminal/messages.h"
#include "terminal/version.h"

namespace pagoda::cli {
namespace {

constexpr int kUsageError = 2;

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  const std::optional<std::string> meant = nearest(word.substr(0, word.find('=')), known);
  return meant ? fmt::format(" (did you mean {}?)", *meant) : "";
}

// The nearest word that exists, and our name of a flag of another server.
std::string word_hint(std::string_view word, std::span<const std::string> known) {
  const std::optional<std::string> foreign = foreign_flag_hint(word, known);
  if (!foreign) return suggestion(word, known);
  const std::optional<std::string> meant = nearest(word.substr(0, word.find('=')), known);
  const bool is_other = meant && foreign->find(" " + *meant + " ") == std::string::npos;
  return is_other ? fmt::format(" ({}; or did you mean {}?)", *foreign, *meant)
                  : fmt::format(" ({})", *foreign);
}

// Returns the part of an unknown flag that is surely a name: behind the name of a flag that exists
// there may be a value ("--api-keySECRET").
std::string flag_name(std::string_view word, std::span<const std::string> known) {
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  };
  const std::string_view name(word.begin(), std::find_if_not(word.begin(), word.end(), is_of_name));
  std::string_view longest;
  for (const std::string& flag : known) {
    const bool begins = flag.starts_with("--") && name.starts_with(flag) && name != flag;
    if (begins && flag.size() > longest.size()) longest = flag;
  }
  return longest.empty() ? std::string(name) : fmt::format("{}…", longest);
}

// Names the words that nothing takes, each with a hint. Any of them may be a key, behind a mistyped
// --api-key or without it: values are never shown, and of other words those that resemble a flag or
// a command.
std::string unknown_words(const CommandLine::Outcome& outcome) {
  std::vector<std::string> messages;
  bool has_hidden = false;
  for (const std::string& word : outcome.unknown) {
    if (word.starts_with('-')) {
      messages.push_back(fmt::format("unknown option {}{}", flag_name(word, outcome.possible),
                                     word_hint(word, outcome.possible)));
    } else if (nearest(word, outcome.possible)) {
      messages.push_back(
          fmt::format("unknown argument {}{}", word, suggestion(word, outcome.possible)));
    } else {
      has_hidden = true;
    }
  }
  if (messages.empty() && has_hidden) {
    messages.emplace_back("unknown argument (it is not shown: it may be a key)");
  }
  return fmt::format("{}", fmt::join(messages, "; "));
}

// "--flag: fp17 not in {fp16,fp32}": the nearest of what is allowed.
std::string value_suggestion(std::string_view message) {
  const std::size_t open = message.find(" not in {");
  const std::size_t word_begin = message.rfind(' ', open == 0 ? 0 : open - 1);
  if (open == std::string_view::npos || word_begin == std::string_view::npos) return "";
  const std::string_view word = message.substr(word_begin + 1, open - word_begin - 1);
  std::vector<std::string> allowed(1);
  for (const char c : message.substr(open + 9)) {
    if (c == '}') break;
    if (c == ',') {
      allowed.emplace_back();
    } else {
      allowed.back() += c;
    }
  }
  return suggestion(word, allowed);
}

// Hides the login of a URL: "redis://:password@host" becomes "redis://…@host".
void hide_login(std::string& word) {
  const std::size_t scheme = word.find("://");
  if (scheme == std::string::npos) return;
  const std::size_t begin = scheme + 3;
  const std::size_t end = word.find_first_of("/?#", begin);
  const std::size_t at = word.rfind('@', end == std::string::npos ? end : end - 1);
  if (at == std::string::npos || at < begin) return;
  word.replace(begin, at - begin, "…");
}

// Reports are shown to others.
std::vector<std::string> without_keys(std::vector<std::string> words) {
  constexpr std::string_view kFlag = "--api-key";
  for (std::string& word : words) hide_login(word);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kFlag && i + 1 < words.size()) words[i + 1] = "KEY";
    if (words[i].starts_with(fmt::format("{}=", kFlag))) words[i] = fmt::format("{}=KEY", kFlag);
  }
  return words;
}

// As it could be pasted into a shell.
std::string line_of(const std::vector<std::string>& words) {
  std::string line = "pagoda";
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool plain = !words[i].empty() &&
                       words[i].find_first_of(" \t\n\"'\\$`&|;<>()*?[]#~!{}") == std::string::npos;
    std::string quoted = words[i];
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) {
      quoted.replace(at, 1, "'\\''");
    }
    line += plain ? " " + words[i] : " '" + quoted + "'";
  }
  return line;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  terminal::set_wording(with_flags);
  const CommandLine command_line("Pagoda: an LLM inference server built around its KV cache",
                                 "pagoda");
  command_line.set_version(fmt::format("pagoda {}", terminal::kVersion));
  const CommandSpec app = command_line.root();
  app.require_subcommand();
  app.footer("Each command has its own --help with examples: pagoda run --help");

  std::vector<std::string> words = with_long_flags(argc, argv);
  int exit_status = 0;
  add_serve_command(app, exit_status);
  add_run_command(app, exit_status);
  add_chat_command(app, exit_status);
  add_size_command(app, exit_status);
  add_tokenize_command(app, exit_status);
  add_inspect_command(app, exit_status);
  add_explain_command(app, exit_status);
  add_replay_command(app, exit_status);
  add_verify_command(app, exit_status);
  add_bench_command(app, line_of(without_keys(words)), exit_status);
  command_line.add_environment_variables(words);

  words.erase(words.begin(), words.begin() + std::min<std::ptrdiff_t>(1, argc));
  const CommandLine::Outcome outcome = command_line.parse(std::move(words));
  if (outcome.exit_status) return *outcome.exit_status;
  if (outcome.error.empty()) return exit_status;
  // Words that nothing takes explain a missing command, too.
  const std::string unknown = unknown_words(outcome);
  print_error(unknown.empty() ? outcome.error + value_suggestion(outcome.error) : unknown);
  fmt::print(stderr, "see: pagoda --help\n");
  return kUsageError;
}

}  // namespace pagoda::cli

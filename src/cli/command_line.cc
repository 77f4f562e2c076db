// The whole command line: which subcommands there are, and what a wrong word is answered with.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/nearest.h"
#include "cli/options.h"
#include "terminal/version.h"

namespace pagoda::cli {
namespace {

constexpr int kUsageError = 2;

// Words that could have stood where a wrong one does: flags and commands of the command it is in.
std::vector<std::string> known_words(const CLI::App& app) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  std::vector<std::string> words;
  for (const CLI::App* const command : chosen->get_subcommands({})) {
    words.push_back(command->get_name());
  }
  for (const CLI::Option* const option : chosen->get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  const std::optional<std::string> meant = nearest(word.substr(0, word.find('=')), known);
  return meant ? fmt::format(" (did you mean {}?)", *meant) : "";
}

// Names the words that nothing takes, each with the nearest that exists. The value of a flag is not
// shown: of a mistyped --api-key it is a key.
std::string unknown_words(const CLI::App& app) {
  const std::vector<std::string> known = known_words(app);
  std::string message;
  bool follows_flag = false;
  for (const std::string& word : app.remaining(true)) {
    const bool is_flag = word.starts_with('-');
    if (is_flag || !follows_flag) {
      message += fmt::format("{}unknown {} {}{}", message.empty() ? "" : "; ",
                             is_flag ? "option" : "argument", word.substr(0, word.find('=')),
                             suggestion(word, known));
    }
    follows_flag = is_flag;
  }
  return message;
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

// Reports are shown to others.
std::vector<std::string> without_keys(std::vector<std::string> words) {
  constexpr std::string_view kFlag = "--api-key";
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
  CLI::App app("Pagoda: an LLM inference server built around its KV cache", "pagoda");
  app.set_version_flag("--version", fmt::format("pagoda {}", terminal::kVersion));
  app.require_subcommand(1);
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
  // CLI11 reads the variables of every command: those of one that was not called would be held
  // against its ranges all the same.
  for (CLI::App* const command : app.get_subcommands({})) {
    const bool named = std::find(words.begin(), words.end(), command->get_name()) != words.end();
    if (named) add_environment_variables(*command);
  }

  words.erase(words.begin(), words.begin() + std::min<std::ptrdiff_t>(1, argc));
  std::reverse(words.begin(), words.end());  // CLI11 wants the last word first
  try {
    app.parse(words);
  } catch (const CLI::Success& asked_for_text) {  // --help, --version
    return app.exit(asked_for_text);
  } catch (const CLI::ParseError& error) {
    // Words that nothing takes explain a missing command, too.
    const std::string unknown = unknown_words(app);
    print_error(unknown.empty() ? error.what() + value_suggestion(error.what()) : unknown);
    fmt::print(stderr, "see: pagoda --help\n");
    return kUsageError;
  }
  return exit_status;
}

}  // namespace pagoda::cli

// The whole command line: which subcommands there are, and what a wrong word is answered with.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/ascii.h"
#include "cli/commands.h"
#include "cli/dotted_flags.h"
#include "cli/field_flags.h"
#include "cli/flag_variables.h"
#include "cli/foreign_commands.h"
#include "cli/foreign_flags.h"
#include "cli/foreign_variables.h"
#include "cli/nearest.h"
#include "cli/options.h"
#include "gguf/mapping_faults.h"
#include "process/command_words.h"
#include "terminal/messages.h"
#include "terminal/version.h"

namespace pagoda::cli {
namespace {

constexpr int kUsageError = 2;
constexpr std::string_view kKeyFlag = "--api-key";

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  const std::optional<std::string> meant = nearest(word.substr(0, word.find('=')), known);
  return meant ? fmt::format(" (did you mean {}?)", *meant) : "";
}

// Our name of a flag of another server, or else the nearest word that exists. `next` is the word
// behind it.
std::string word_hint(std::string_view word, std::string_view next,
                      std::span<const std::string> known) {
  const bool has_port = std::find(known.begin(), known.end(), "--port") != known.end();
  if (word == "-p" && has_port) return " (did you mean --port?)";
  if (word == "--version") return " (pagoda --version shows it)";
  const std::optional<std::string> foreign = foreign_flag_hint(word, known, next);
  return foreign ? fmt::format(" ({})", *foreign) : suggestion(word, known);
}

// Returns the part of an unknown flag that is surely a name: behind the words "key" and "secret"
// there may be one ("--api-keySECRET"), unless another server has a flag of that name.
std::string flag_name(std::string_view word) {
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  };
  const std::string_view name(word.begin(), std::find_if_not(word.begin(), word.end(), is_of_name));
  if (is_foreign_flag(name)) return std::string(name);
  const bool is_short = name.size() > 2 && name[1] != '-';  // "-k" and, glued to it, perhaps a key
  if (is_short) return fmt::format("{}…", name.substr(0, 2));
  for (const std::string_view word_of_keys : {"key", "secret"}) {
    const std::size_t at = name.find(word_of_keys);
    if (at == std::string_view::npos || at + word_of_keys.size() == name.size()) continue;
    return fmt::format("{}…", name.substr(0, at + word_of_keys.size()));
  }
  return std::string(name);
}

// Returns where the unknown words stand among all words. They keep their order; of equal words the
// last is meant, as the parser takes what it can from the front.
std::vector<std::size_t> places_of(const std::vector<std::string>& unknown,
                                   const std::vector<std::string>& words) {
  std::vector<std::size_t> places(unknown.size(), words.size());
  std::size_t end = words.size();
  for (std::size_t i = unknown.size(); i-- > 0;) {
    for (std::size_t at = end; at-- > 0;) {
      if (words[at] != unknown[i]) continue;
      places[i] = end = at;
      break;
    }
  }
  return places;
}

// Returns ", after --port": the nearest flag of ours before the word. Others are left out, as they
// may be the value of a flag that takes keys.
std::string flag_before(std::size_t place, const std::vector<std::string>& words,
                        std::span<const std::string> known) {
  for (std::size_t at = place; at-- > 0;) {
    const std::string name = words[at].substr(0, words[at].find('='));
    const bool is_short = name.size() == 2 && name[0] == '-' && name[1] != '-';
    const bool is_long =
        name.starts_with("--") && std::find(known.begin(), known.end(), name) != known.end();
    if (is_short || is_long) return fmt::format(", after {}", name);
  }
  return "";
}

bool is_plain_word(std::string_view word) {
  constexpr std::size_t kLettersMax = 20;
  const auto is_plain = [](char c) { return is_ascii_letter(c) || c == '-'; };
  return !word.empty() && word.size() <= kLettersMax &&
         std::all_of(word.begin(), word.end(), is_plain);
}

// An unknown word behind a command that takes a prompt is often meant as the prompt.
const char* prompt_hint(std::string_view command) {
  const bool has_prompt = command == "run" || command == "chat" || command == "explain";
  return has_prompt ? "; a prompt stands behind -p" : "";
}

// An option that was typed twice is named once.
std::string each_once(const std::vector<std::string>& messages) {
  std::vector<std::string> once;
  for (const std::string& message : messages) {
    if (std::find(once.begin(), once.end(), message) == once.end()) once.push_back(message);
  }
  return fmt::format("{}", fmt::join(once, "; "));
}

// Returns where a word should name a command below the place's own; nothing where there is none.
std::optional<std::size_t> command_place(const CommandLine::Place& place) {
  const bool has_commands =
      std::any_of(place.possible.begin(), place.possible.end(),
                  [](const std::string& word) { return !word.starts_with('-'); });
  if (!has_commands) return std::nullopt;
  if (place.command.empty()) return 0;
  return static_cast<std::size_t>(1 + std::count(place.command.begin(), place.command.end(), ' '));
}

// Names an unknown command of our own or of another program's; `above` is what it stands behind.
std::string unknown_command(std::string_view above, std::string_view word) {
  const std::optional<std::string> hint = foreign_command_hint(above, word);
  return fmt::format("unknown command {}{}{}{}", above, above.empty() ? "" : " ", word,
                     hint ? fmt::format(" ({})", *hint) : "");
}

// Names the words that nothing takes, each with a hint. Any of them may be a key, behind a mistyped
// --api-key or without it: values are never shown, and of other words those that resemble a flag or
// a command, and a plain one in the command's place. `words`: all of the command line.
std::string unknown_words(const CommandLine::Outcome& outcome, const CommandLine::Place& place,
                          const std::vector<std::string>& words) {
  const std::optional<std::size_t> of_command = command_place(place);
  const std::vector<std::size_t> places = places_of(outcome.unknown, words);
  std::vector<std::string> messages;
  std::string hidden;  // the first of those that are not shown
  for (std::size_t i = 0; i < outcome.unknown.size(); ++i) {
    const std::string& word = outcome.unknown[i];
    const bool is_command = places[i] == of_command && is_plain_word(word);
    const char* const kind = places[i] == of_command ? "command" : "argument";
    const std::size_t behind = places[i] + 1;
    if (word.starts_with('-')) {
      messages.push_back(fmt::format(
          "unknown option {}{}", flag_name(word),
          word_hint(word, behind < words.size() ? words[behind] : "", outcome.possible)));
    } else if (is_command && foreign_command_hint(place.command, word)) {
      messages.push_back(unknown_command(place.command, word));
    } else if (nearest(word, outcome.possible)) {
      messages.push_back(
          fmt::format("unknown {} {}{}", kind, word, suggestion(word, outcome.possible)));
    } else if (is_command) {
      messages.push_back(unknown_command(place.command, word));
    } else if (hidden.empty()) {
      hidden =
          fmt::format("unknown argument {}{} (it is not shown: it may be a key{})", places[i] + 1,
                      flag_before(places[i], words, outcome.possible), prompt_hint(words.front()));
    }
  }
  if (messages.empty() && !hidden.empty()) messages.push_back(hidden);
  return each_once(messages);
}

// True: a flag of several letters behind one dash, as other servers have them. Values that stand
// right behind our flags of one letter are numbers: "-t8".
bool is_short_name(std::string_view name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return name.size() > 2 && name.size() <= 8 && name[0] == '-' &&
         std::all_of(name.begin() + 1, name.end(), is_letter);
}

// Names the flags of several letters behind one dash that are not ours, and the unknown long ones
// of other servers beside them: "-hf" would be read as -h, "-cb" as -c with a value. Returns
// nothing where there is no such short one.
std::string foreign_short_flags(const std::vector<std::string>& words,
                                const CommandLine::Place& place) {
  std::vector<std::string> messages;
  bool has_short = false;
  for (const std::size_t at : place.flags) {
    const std::string& word = words[at];
    const std::string name = word.substr(0, word.find('='));
    const bool is_short = is_short_name(name);
    const std::optional<std::string> hint = foreign_flag_hint(word, place.possible);
    const bool is_known =
        std::find(place.possible.begin(), place.possible.end(), name) != place.possible.end();
    if (is_known || (!hint && !is_short)) continue;
    if (!is_short && !word.starts_with("--")) continue;
    has_short = has_short || is_short;
    messages.push_back(hint ? fmt::format("unknown option {} ({})", name, *hint)
                            : fmt::format("unknown option {}", name));
  }
  return has_short ? each_once(messages) : "";
}

// Takes flags of other servers that change nothing here out of the words of a command that people
// move their start scripts to, and says so.
void take_idle_flags(const CommandLine& command_line, std::vector<std::string>& words) {
  const CommandLine::Place place = command_line.place_of(words);
  if (place.command != "serve" && place.command != "run" && place.command != "chat") return;
  std::size_t gone = 0;  // words taken out before the flag's
  for (const std::size_t place_before : place.flags) {
    const std::size_t at = place_before - gone;
    const std::string next = at + 1 < words.size() ? words[at + 1] : "";
    const std::optional<TakenFlag> taken = take_idle_flag(words[at], next, place.possible);
    if (!taken) continue;
    print_warning(taken->note);
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at);
    words.erase(begin, begin + static_cast<std::ptrdiff_t>(taken->words));
    gone += taken->words;
  }
}

std::span<const char* const> environment() {
  std::size_t count = 0;
  while (environ[count] != nullptr) ++count;
  return {environ, count};
}

void warn_of_variables(const CommandLine& command_line) {
  for (const std::string& warning : unknown_variables(environment(), command_line.variables())) {
    print_warning(warning);
  }
}

// Says which variables of other servers are read, and what the others are called here.
std::vector<ReadVariable> read_variables(const CommandLine& command_line,
                                         const std::vector<std::string>& words) {
  const CommandLine::Place place = command_line.place_of(words);
  ForeignVariables found = read_foreign_variables(place.command, environment(), place.possible,
                                                  command_line.given(words));
  for (const std::string& note : found.notes) print_note(note);
  for (const std::string& warning : found.warnings) print_warning(warning);
  return std::move(found.read);
}

// The words with what the variables say behind the command.
std::vector<std::string> with_variables(std::vector<std::string> words,
                                        std::span<const ReadVariable> variables) {
  for (const ReadVariable& variable : variables) {
    words.insert(words.begin() + 1, {variable.flag, variable.value});
  }
  return words;
}

bool asks_for_text(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "--help" || word == "-h" || word == "--version";
  });
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
  for (std::string& word : words) hide_login(word);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string flag = words[i].substr(0, words[i].find('='));
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (flag != kKeyFlag) continue;
    if (flag.size() < words[i].size()) words[i] = fmt::format("{}=KEY", kKeyFlag);
    if (flag.size() == words[i].size() && i + 1 < words.size()) words[++i] = "KEY";
  }
  return words;
}

std::string line_of(std::vector<std::string> words) {
  if (!words.empty()) words.front() = "pagoda";
  return process::shell_line(words);
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  terminal::set_wording(with_flags);
  gguf::report_mapping_faults();
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
  add_pull_command(app, exit_status);
  add_plan_command(app, exit_status);
  add_size_command(app, exit_status);
  add_tokenize_command(app, exit_status);
  add_template_command(app, exit_status);
  add_inspect_command(app, exit_status);
  add_explain_command(app, exit_status);
  add_replay_command(app, exit_status);
  add_verify_command(app, exit_status);
  const std::string typed = line_of(without_keys(words));
  add_eval_command(app, typed, exit_status);
  add_bench_command(app, typed, exit_status);
  command_line.add_environment_variables(words);

  words.erase(words.begin(), words.begin() + std::min<std::ptrdiff_t>(1, argc));
  if (!words.empty() && words.front() == "help") {  // "help serve" is "serve --help"
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (words.empty()) {  // as help, but it is no success: a script has lost its command
    fmt::print(stderr, "{}", command_line.help());
    return kUsageError;
  }
  words = command_line.with_dashes(std::move(words));
  words = with_joined_fields(words, command_line.place_of(words));
  if (words.front() == "serve") words = with_each_served_name(std::move(words));
  std::vector<ReadVariable> variables;
  if (!asks_for_text(words)) {
    warn_of_variables(command_line);
    take_idle_flags(command_line, words);
    variables = read_variables(command_line, words);
  }
  const CommandLine::Place place = command_line.place_of(words);
  std::string error = foreign_short_flags(words, place);
  if (error.empty()) {
    const CommandLine::Outcome outcome = command_line.parse(with_variables(words, variables));
    if (outcome.exit_status) return *outcome.exit_status;
    if (outcome.error.empty()) return exit_status;
    // Words that nothing takes explain a missing command, too.
    const std::string unknown = unknown_words(outcome, place, words);
    error = unknown.empty() ? with_foreign_variable(outcome.error, variables) : unknown;
  }
  print_error(error);
  fmt::print(stderr, "see: pagoda {}{}--help\n", place.command, place.command.empty() ? "" : " ");
  return kUsageError;
}

}  // namespace pagoda::cli

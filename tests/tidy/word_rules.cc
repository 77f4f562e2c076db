#include "tidy/word_rules.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace pagoda::tidy {
namespace {

struct Metaphor {
  std::string_view word;
  std::string_view instead;
  std::vector<std::string_view> exempt =
      {};  // paths that begin so, where the word is plain or left
};

const std::vector<Metaphor>& metaphor_table() {
  static const std::vector<Metaphor> kTable = {
      {"arithmetics", "numerics"},
      {"asker", "caller, client or scope"},
      {"bell", "notifier"},
      {"berth", "staging buffer"},
      {"board", "reader or snapshot"},
      {"breathe", "yield"},
      {"courier", "request pipeline"},
      {"departure", "eviction record"},
      {"desk", "fixture or mailbox"},
      {"dialect", "protocol", {"src/text/", "tests/text/"}},
      {"displace", "evict"},
      {"doomed", "expired"},
      {"doorbell", "notifier"},
      {"enrol", "register"},
      {"errand", "store request"},
      {"foresight", "prediction"},
      {"foretell", "predict"},
      {"greet", "handshake"},
      {"keeper", "maintenance thread"},
      {"machinery", "the parts by their names"},
      {"mould", "template"},
      {"mover", "copier"},
      {"namer", "hasher"},
      {"nap", "sleep"},
      {"nudge", "notify"},
      {"occasion", "trigger"},
      {"outlook", "estimate"},
      {"passage", "range"},
      {"patience", "timeout", {"src/base/", "src/engine/", "tests/engine/", "tests/events/"}},
      {"picture", "snapshot or stats", {"src/cli/", "src/terminal/"}},
      {"riddle", "ambiguous request"},
      {"shelf", "tier set"},
      {"shelve", "tier set"},
      {"situation", "scheduler view or case", {"tests/engine/"}},
      {"solo", "single sequence"},
      {"spoilt", "not finite"},
      {"tally", "counter"},
      {"trail", "match or path"},
      {"twin", "reference or copy", {"tests/kv/"}},
      {"unfit", "deferred"},
      {"upkeep", "maintenance"},
      {"wish", "request or parameters"},
      {"yardstick", "reference"},
  };
  return kTable;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

bool is_exempt(const Metaphor& metaphor, std::string_view path) {
  return std::any_of(metaphor.exempt.begin(), metaphor.exempt.end(),
                     [&](std::string_view prefix) { return path.starts_with(prefix); });
}

// The metaphor that a word in small letters is, alone or in the plural; nullptr for other words.
const Metaphor* metaphor_of(std::string_view word, std::string_view path) {
  for (const Metaphor& metaphor : metaphor_table()) {
    std::string_view rest = word;
    if (!rest.starts_with(metaphor.word)) continue;
    rest.remove_prefix(metaphor.word.size());
    const bool fits = rest.empty() || rest == "s" || rest == "es";
    if (fits && !is_exempt(metaphor, path)) return &metaphor;
  }
  return nullptr;
}

// Calls visit(word) for each part of snake_case and CamelCase, in small letters.
template <class Visit>
void visit_words(std::string_view text, const Visit& visit) {
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool letter = i < text.size() && is_letter(text[i]);
    const bool hump = letter && is_upper(text[i]) && i > 0 && !is_upper(text[i - 1]);
    if ((!letter || hump) && !word.empty()) {
      visit(word);
      word.clear();
    }
    if (letter) word += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
  }
}

std::string without_std_names(std::string_view line) {
  std::string result(line);
  for (std::size_t at = 0; (at = result.find("std::", at)) != std::string::npos;) {
    std::size_t end = at + 5;
    while (end < result.size() && is_word(result[end])) ++end;
    result.erase(at, end - at);
  }
  return result;
}

bool is_include(std::string_view line) {
  line = trimmed(line);
  return line.starts_with('#') && trimmed(line.substr(1)).starts_with("include");
}

// Files that write the command lines of other programs.
constexpr std::array<std::string_view, 6> kOtherPrograms = {
    "src/app/hub_download.cc",   "src/app/model_package.cc", "src/bench/agent_servers.cc",
    "src/bench/peer_program.cc", "src/bench/tiers_plain.cc", "src/serve/eval_command.cc"};

// Whether a flag begins at `at`: two dashes, then a letter.
bool is_flag_at(std::string_view text, std::size_t at) {
  return text.substr(at).starts_with("--") && at + 2 < text.size() && is_letter(text[at + 2]);
}

bool names_flag(std::string_view literal) {
  for (std::size_t at = 0; (at = literal.find("--", at)) != std::string_view::npos; ++at) {
    const bool inside = at > 0 && (is_word(literal[at - 1]) || literal[at - 1] == '-');
    if (!inside && is_flag_at(literal, at)) return true;
  }
  return false;
}

// The text of a line that has nothing but a // comment; empty for other lines.
std::string_view comment_line(std::string_view line) {
  line = trimmed(line);
  return line.starts_with("//") ? trimmed(line.substr(2)) : std::string_view();
}

// Whether the first sentence that begins on line `first` ends with a question mark.
bool is_question(const std::vector<std::string_view>& lines, std::size_t first) {
  for (std::size_t i = first; i < lines.size(); ++i) {
    const std::string_view text = comment_line(lines[i]);
    if (text.empty()) return false;
    for (std::size_t at = 0; (at = text.find_first_of(".?!", at)) != std::string_view::npos; ++at) {
      if (at + 1 == text.size() || text[at + 1] == ' ') return text[at] == '?';
    }
  }
  return false;
}

}  // namespace

Findings metaphors(const SourceText& source) {
  const std::string_view path = source.path;
  if (!path.starts_with("src/") && !path.starts_with("tests/")) return {};
  if (path.starts_with("tests/tidy/")) return {};  // the table itself
  Findings findings;
  int number = 1;
  const auto check = [&](const std::string& word) {
    const Metaphor* const metaphor = metaphor_of(word, path);
    if (metaphor == nullptr) return;
    findings.push_back(
        {number, "'" + word + "' is a metaphor: say " + std::string(metaphor->instead)});
  };
  visit_words(path, check);
  number = 0;
  const std::vector<std::string_view> comments = split_lines(source.comments);
  for (const std::string_view line : split_lines(source.code)) {
    ++number;
    if (!is_include(line)) visit_words(without_std_names(line), check);
    visit_words(comments[static_cast<std::size_t>(number) - 1], check);
  }
  return findings;
}

Findings flags_below_the_command_line(const SourceText& source) {
  const std::string_view path = source.path;
  if (!path.starts_with("src/") || path.starts_with("src/cli/")) return {};
  if (std::find(kOtherPrograms.begin(), kOtherPrograms.end(), path) != kOtherPrograms.end()) {
    return {};
  }
  Findings findings;
  // Quotes stand in both views; what is between them stands in `literals` alone.
  for (std::size_t at = 0; (at = source.code.find('"', at)) != std::string::npos;) {
    const std::size_t end = source.code.find('"', at + 1);
    if (end == std::string::npos) break;
    const std::string literal = source.literals.substr(at + 1, end - at - 1);
    if (names_flag(literal)) {
      findings.push_back({line_of(source.code, at),
                          "\"" + literal + "\" names a flag: name the field, src/cli maps it"});
    }
    at = end + 1;
  }
  return findings;
}

Findings nounless_comments(const SourceText& source) {
  if (!source.path.starts_with("src/")) return {};
  Findings findings;
  const std::vector<std::string_view> lines = split_lines(source.text);
  const std::vector<std::string_view> comments = split_lines(source.comments);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view text = comment_line(lines[i]);
    const bool is_nounless = text.starts_with("Of ") || text.starts_with("What ");
    if (!is_nounless || trimmed(comments[i]).empty() || is_question(lines, i)) continue;
    findings.push_back({static_cast<int>(i) + 1,
                        "a comment that opens with '" +
                            std::string(text.substr(0, text.find(' '))) +
                            "' hides its noun: write a sentence with a subject and a verb"});
  }
  return findings;
}

}  // namespace pagoda::tidy

#include "tidy/rules.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace pagoda::tidy {
namespace {

constexpr std::array<std::string_view, 9> kEmptyWords = {
    "manager", "managers", "helper", "helpers", "util", "utils", "common", "misc", "utility"};

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

bool is_include(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.front() != '#') return false;
  return trimmed(line.substr(1)).starts_with("include");
}

// The first empty word of a name in snake_case or CamelCase, or nothing.
std::string_view empty_word(std::string_view name) {
  std::string word;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const bool letter = i < name.size() && std::isalpha(static_cast<unsigned char>(name[i])) != 0;
    const bool hump = letter && is_upper(name[i]) && i > 0 && !is_upper(name[i - 1]);
    if (!letter || hump) {
      const auto* const found = std::find(kEmptyWords.begin(), kEmptyWords.end(), word);
      if (found != kEmptyWords.end()) return *found;
      word.clear();
    }
    if (letter) word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return {};
}

// Words of identifier characters, with the place where each begins.
struct Word {
  std::string_view text;
  std::size_t at;
};

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at;
    while (end < line.size() && is_word(line[end])) ++end;
    if (end > at) words.push_back({line.substr(at, end - at), at});
    at = std::max(end, at + 1);
  }
  return words;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void check_identifiers(std::string_view line, int number, Findings& findings) {
  std::string_view previous;
  for (const Word& word : words_of(line)) {
    const bool foreign = line.substr(0, word.at).ends_with("std::");
    const std::string_view empty = foreign ? std::string_view() : empty_word(word.text);
    if (!empty.empty()) {
      findings.push_back({number, "'" + std::string(word.text) + "' says '" + std::string(empty) +
                                      "': find the noun"});
    }
    const bool declared = is_one_of(previous, {"class", "struct", "union", "enum", "using"});
    const bool base =
        word.text.starts_with("Base") && (word.text.size() == 4 || is_upper(word.text[4]));
    if (declared && base) {
      findings.push_back(
          {number, "type '" + std::string(word.text) + "' begins with Base: find the noun"});
    }
    previous = word.text;
  }
}

// The length of a name like a.b->c::d at the beginning; 0 when there is none.
std::size_t name_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_word(text[at])) {
    while (at < text.size() && is_word(text[at])) ++at;
    const std::string_view rest = text.substr(at);
    const std::size_t joint =
        rest.starts_with("::") || rest.starts_with("->") ? 2 : (rest.starts_with('.') ? 1 : 0);
    if (joint == 0 || joint >= rest.size() || !is_word(rest[joint])) break;
    at += joint;
  }
  return at;
}

bool reads_like_block(std::string_view text) {
  const std::string_view head = trimmed(text.substr(0, text.size() - 1));
  const std::vector<Word> words = words_of(head);
  if (head.starts_with("} else") || head == "else") return true;
  if (words.empty()) return false;
  if (is_one_of(words.front().text, {"class", "struct", "namespace"})) return words.size() == 2;
  const bool control = is_one_of(words.front().text, {"if", "for", "while", "switch"});
  return control && trimmed(head.substr(words.front().text.size())).starts_with('(') &&
         head.ends_with(')');
}

bool reads_like_statement(std::string_view text) {
  const std::string_view statement = trimmed(text.substr(0, text.size() - 1));
  const std::size_t name = name_length(statement);
  if (name == 0) return false;
  const std::string_view first = words_of(statement).front().text;
  if (first == "return") return true;
  const std::string_view rest = statement.substr(name);
  if (rest.starts_with('(') && !rest.starts_with("( ")) return rest.ends_with(')');
  const std::size_t equals = statement.find("= ");
  if (equals == std::string_view::npos) return false;
  const bool declares =
      first == "std" || is_one_of(first, {"auto", "bool", "char", "const", "constexpr", "double",
                                          "float", "int", "static", "unsigned"});
  const std::string_view left = trimmed(statement.substr(0, equals));
  // `x = 3` and `x += 3`: nothing but the name, then at most the sign before '='.
  return declares || left.size() <= name + 2;
}

// "pow", and "powf" and "powl" for float and long double.
bool is_mathematics(std::string_view word) {
  const auto is_name = [](std::string_view name) {
    return is_one_of(name, {"sin",   "cos",  "tan",  "asin", "acos",  "atan",  "atan2",  "sinh",
                            "cosh",  "tanh", "exp",  "exp2", "expm1", "log",   "log2",   "log10",
                            "log1p", "pow",  "cbrt", "erf",  "erfc",  "hypot", "tgamma", "lgamma"});
  };
  const bool suffixed = word.ends_with('f') || word.ends_with('l');
  return is_name(word) || (suffixed && is_name(word.substr(0, word.size() - 1)));
}

// A call of the C library's function by a name without std::, `expf(x)` or `::pow(x, y)`; neither a
// member's nor another namespace's, nor where a function of this name is declared or takes nothing.
bool calls_library(std::string_view line, const Word& word) {
  const std::string_view rest = trimmed(line.substr(word.at + word.text.size()));
  if (!rest.starts_with('(') || trimmed(rest.substr(1)).starts_with(')')) return false;
  std::string_view before = line.substr(0, word.at);
  if (before.ends_with("::")) {
    before.remove_suffix(2);
    if (!before.empty() && (is_word(before.back()) || before.back() == '>')) return false;
  } else if (before.ends_with('.') || before.ends_with("->")) {
    return false;
  }
  before = trimmed(before);
  if (before.empty() || !is_word(before.back())) return true;
  return is_one_of(words_of(before).back().text, {"return", "co_return", "else", "case"});
}

}  // namespace

Findings file_too_long(const SourceText& source) {
  const int limit = extension(source.path) == "cu" ? kCudaLinesMax : kLinesMax;
  const int lines = static_cast<int>(split_lines(source.text).size());
  if (lines <= limit) return {};
  return {{lines, std::to_string(lines) + " lines, at most " + std::to_string(limit)}};
}

Findings lines_too_long(const SourceText& source) {
  Findings findings;
  int number = 0;
  for (const std::string_view line : split_lines(source.text)) {
    ++number;
    // Continuation bytes 10xxxxxx do not begin a code point.
    const auto columns =
        static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
          return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
        }));
    if (columns > kColumnsMax) {
      findings.push_back(
          {number, std::to_string(columns) + " columns, at most " + std::to_string(kColumnsMax)});
    }
  }
  return findings;
}

Findings stray_blanks(const SourceText& source) {
  Findings findings;
  int number = 0;
  for (const std::string_view line : split_lines(source.text)) {
    ++number;
    if (line.find('\t') != std::string_view::npos) findings.push_back({number, "a tab"});
    if (line.find('\r') != std::string_view::npos)
      findings.push_back({number, "a carriage return"});
    if (line.ends_with(' ')) findings.push_back({number, "a blank at the line's end"});
  }
  return findings;
}

Findings missing_pragma_once(const SourceText& source) {
  if (!is_header(source.path)) return {};
  for (const std::string_view line : split_lines(source.code)) {
    if (trimmed(line) == "#pragma once") return {};
  }
  return {{1, "a header without #pragma once"}};
}

Findings empty_names(const SourceText& source) {
  Findings findings;
  const std::string_view path = source.path;
  const std::string_view word = empty_word(path);
  if (!word.empty()) {
    findings.push_back({1, "the path says '" + std::string(word) + "': find the noun"});
  }
  int number = 0;
  for (const std::string_view line : split_lines(source.code)) {
    ++number;
    if (is_include(line)) continue;
    check_identifiers(line, number, findings);
  }
  return findings;
}

Findings legacy_stream_work(const SourceText& source) {
  Findings findings;
  int number = 0;
  for (const std::string_view line : split_lines(source.code)) {
    ++number;
    for (const Word& word : words_of(line)) {
      const bool copies =
          word.text.starts_with("cudaMemcpy") || word.text.starts_with("cudaMemset");
      const bool called = trimmed(line.substr(word.at + word.text.size())).starts_with('(');
      if (copies && called && word.text.find("Async") == std::string_view::npos) {
        findings.push_back({number, "'" + std::string(word.text) +
                                        "' works on the legacy default stream: use a Stream"});
      }
    }
    if (line.find("<<<") != std::string_view::npos) {
      findings.push_back({number, "a <<<>>> launch: use launch_kernel, which names its stream"});
    }
  }
  return findings;
}

Findings library_mathematics(const SourceText& source) {
  const std::string_view path = source.path;
  const auto computes = {"src/engine/",  "src/gguf/", "src/hf/",
                         "src/kernels/", "src/kv/",   "src/model/"};
  if (std::none_of(computes.begin(), computes.end(),
                   [&](const char* folder) { return path.starts_with(folder); }) ||
      path.starts_with("src/kernels/cuda/reference")) {
    return {};
  }
  const bool cuda = extension(path) == "cu" || extension(path) == "cuh";
  Findings findings;
  int number = 0;
  for (const std::string_view line : split_lines(source.code)) {
    ++number;
    for (const Word& word : words_of(line)) {
      if (!is_mathematics(word.text)) continue;
      const bool of_std = line.substr(0, word.at).ends_with("std::");
      if (!of_std && (cuda || !calls_library(line, word))) continue;
      findings.push_back({number, std::string(of_std ? "std::" : "") + std::string(word.text) +
                                      " differs between hosts: base/elementary.h, kernels/exp.h"});
    }
  }
  return findings;
}

Findings commented_out_code(const SourceText& source) {
  Findings findings;
  const std::vector<std::string_view> code_lines = split_lines(source.code);
  int number = 0;
  for (const std::string_view line : split_lines(source.comments)) {
    ++number;
    if (trimmed(code_lines[static_cast<std::size_t>(number) - 1]) == "#if 0") {
      findings.push_back({number, "#if 0 hides code"});
    }
    const std::string_view comment = trimmed(line);
    if (!comment.starts_with("//") || comment.starts_with("//   ")) continue;
    const std::string_view words = trimmed(comment.substr(2));
    const bool code = (words.ends_with('{') && reads_like_block(words)) ||
                      (words.ends_with(';') && reads_like_statement(words)) ||
                      words.starts_with("#include ");
    if (code) {
      findings.push_back({number, "commented-out code: " + std::string(words)});
    }
  }
  return findings;
}

}  // namespace pagoda::tidy

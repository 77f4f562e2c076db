#include "tidy/function_length.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace pagoda::tidy {
namespace {

enum class Level { kScope, kFunction, kOther };

// What is open at one place of the file; copied at #if.
struct Position {
  std::vector<Level> open;
  std::size_t head = 0;         // where the words before the next brace begin
  std::size_t opened_head = 0;  // of the function that is open
};

std::string folded(std::string_view text) {
  std::string result;
  for (const char c : trimmed(text)) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank) result += c;
    if (blank && !result.ends_with(' ')) result += ' ';
  }
  return result;
}

// The head without template<…> before it, whose arguments may hold '=' and "class".
std::string_view without_template(std::string_view head) {
  while (head.starts_with("template")) {
    int depth = 0;
    std::size_t at = head.find('<');
    for (; at < head.size(); ++at) {
      if (head[at] == '<') ++depth;
      if (head[at] == '>' && --depth == 0) break;
    }
    if (at >= head.size()) break;
    head = trimmed(head.substr(at + 1));
  }
  return head;
}

struct Outside {
  std::string words;  // with "()" for what stood in parentheses
  bool closed;        // every parenthesis has its partner
};

Outside outside_parentheses(std::string_view head) {
  Outside result = {"", true};
  int depth = 0;
  for (const char c : head) {
    if (c == ')') --depth;
    if (depth == 0) result.words += c;
    if (c == '(') ++depth;
  }
  result.closed = depth == 0;
  return result;
}

constexpr std::array<std::string_view, 5> kBeforeScope = {"const", "export", "inline", "static",
                                                          "typedef"};

// Whether the head begins a namespace, a type or extern "C".
bool names_scope(std::string_view head) {
  for (;;) {
    const auto* const end = std::find_if_not(head.begin(), head.end(), is_word);
    const auto word = head.substr(0, static_cast<std::size_t>(end - head.begin()));
    const std::string_view rest = trimmed(head.substr(word.size()));
    for (const std::string_view scope : {"namespace", "class", "struct", "union", "enum"}) {
      if (word == scope) return true;
    }
    if (word == "extern") return rest.starts_with('"');
    if (std::find(kBeforeScope.begin(), kBeforeScope.end(), word) == kBeforeScope.end()) {
      return false;
    }
    head = rest;
  }
}

Level classify(std::string_view head) {
  const std::string words = folded(head);
  const auto [outside, closed] = outside_parentheses(without_template(words));
  if (!closed) return Level::kOther;
  const bool has_call = outside.find('(') != std::string::npos;
  // `struct Point make() {` is a function; `struct alignas(16) Row {` is not.
  if (names_scope(outside) && !(has_call && outside.ends_with(")"))) {
    return Level::kScope;
  }
  if (!has_call) return Level::kOther;
  const std::size_t equals = outside.find('=');
  if (equals == std::string::npos || outside.find("operator") != std::string::npos) {
    return Level::kFunction;
  }
  return outside.find('[', equals) != std::string::npos ? Level::kFunction : Level::kOther;
}

class BraceCounter {
 public:
  explicit BraceCounter(const SourceText& source) : code_(source.code) {}

  FunctionList run() {
    bool line_start = true;
    for (std::size_t at = 0; at < code_.size(); ++at) {
      const char c = code_[at];
      if (line_start && c == '#') follow_branches(take_directive(at), at);
      if (c == '\n') line_start = true;
      if (c != '\n' && c != ' ') line_start = false;
      if (code_[at] == '{') open(at);
      if (code_[at] == '}') close(at);
      if (at_scope()) end_statement(at);
    }
    list_.balanced = list_.balanced && position_.open.empty();
    return std::move(list_);
  }

 private:
  bool at_scope() const { return position_.open.empty() || position_.open.back() == Level::kScope; }

  // Blanks the directive that begins at `at`, over lines that end in a backslash, and returns it.
  std::string take_directive(std::size_t at) {
    std::string words;
    bool escaped = false;
    for (; at < code_.size() && (code_[at] != '\n' || escaped); ++at) {
      escaped = code_[at] == '\\';
      words += code_[at];
      if (code_[at] != '\n') code_[at] = ' ';
    }
    return words;
  }

  void open(std::size_t at) {
    if (!at_scope()) {
      position_.open.push_back(Level::kOther);
      return;
    }
    const Level level =
        classify(std::string_view(code_).substr(position_.head, at - position_.head));
    if (level == Level::kFunction) position_.opened_head = position_.head;
    if (level == Level::kScope) position_.head = at + 1;
    position_.open.push_back(level);
  }

  void close(std::size_t at) {
    if (position_.open.empty()) {
      list_.balanced = false;
      return;
    }
    const Level level = position_.open.back();
    position_.open.pop_back();
    if (!at_scope()) return;
    // `a_{x}, b_{y} {`: a member, and the signature goes on.
    const std::size_t next = code_.find_first_not_of(" \n", at + 1);
    const bool goes_on = next != std::string::npos && (code_[next] == ',' || code_[next] == '{');
    if (goes_on && level != Level::kScope) return;
    if (level == Level::kFunction) add_function(at);
    position_.head = at + 1;
  }

  void add_function(std::size_t last) {
    const std::size_t first = code_.find_first_not_of(" \n", position_.opened_head);
    const std::size_t brace = code_.find('{', first);
    list_.functions.push_back({line_of(code_, first), line_of(code_, last),
                               folded(std::string_view(code_).substr(first, brace - first))});
  }

  // At scope level: where the next head begins.
  void end_statement(std::size_t at) {
    if (code_[at] == ';') position_.head = at + 1;
    if (code_[at] != ':') return;
    const std::string_view head =
        trimmed(std::string_view(code_).substr(position_.head, at - position_.head));
    if (head == "public" || head == "private" || head == "protected") position_.head = at + 1;
  }

  // `at` is where the directive stood; it is blank by now.
  void follow_branches(const std::string& directive, std::size_t at) {
    const std::string_view words = trimmed(std::string_view(directive).substr(1));
    if (words.starts_with("if")) {
      branches_.push_back({position_, head_is_blank(at)});
    } else if (words.starts_with("el") && !branches_.empty()) {
      position_ = branches_.back().before;
      if (branches_.back().fresh) position_.head = at;
    } else if (words.starts_with("endif") && !branches_.empty()) {
      branches_.pop_back();
    }
  }

  bool head_is_blank(std::size_t at) const {
    return trimmed(std::string_view(code_).substr(position_.head, at - position_.head)).empty();
  }

  struct Branch {
    Position before;
    bool fresh;  // no word of a head stood before the #if
  };

  std::string code_;
  Position position_;
  std::vector<Branch> branches_;
  FunctionList list_;
};

}  // namespace

FunctionList list_functions(const SourceText& source) { return BraceCounter(source).run(); }

Findings functions_too_long(const SourceText& source) {
  const FunctionList list = list_functions(source);
  Findings findings;
  for (const Function& function : list.functions) {
    if (function.lines() <= kFunctionLinesMax) continue;
    findings.push_back({function.first_line, std::to_string(function.lines()) + " lines, at most " +
                                                 std::to_string(kFunctionLinesMax) + ": " +
                                                 function.head.substr(0, 60)});
  }
  if (!list.balanced) {
    const int last = static_cast<int>(split_lines(source.text).size());
    findings.push_back({last, "braces do not balance, so that functions cannot be measured"});
  }
  return findings;
}

}  // namespace pagoda::tidy

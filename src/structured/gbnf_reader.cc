#include "structured/gbnf_reader.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "structured/character_form.h"
#include "structured/pattern_reader.h"
#include "structured/text_cursor.h"

namespace pagoda::structured {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

// An element has at most so many quantifiers, since each nests the element once more.
constexpr int kQuantifiersMax = 4;

class GbnfReader {
 public:
  GbnfReader(std::string_view text, GrammarTree& tree) : cursor_(text), tree_(tree) {}

  Result<GrammarNodeId> read_all() {
    skip_space(true);
    while (!cursor_.at_end()) RETURN_IF_ERROR(read_rule());
    for (const auto& [name, rule] : rules_) {
      if (!rule.is_defined) {
        return Error{ErrorCode::kInvalidArgument, fmt::format("rule \"{}\" is not defined", name)};
      }
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) {
      return Error{ErrorCode::kInvalidArgument, "rule \"root\" is not defined"};
    }
    return tree_.rule(root->second.id);
  }

 private:
  struct NamedRule {
    RuleId id = 0;
    bool is_defined = false;
  };

  void skip_space(bool over_lines) {
    while (!cursor_.at_end()) {
      const char c = cursor_.peek();
      if (c == '#') {
        while (!cursor_.at_end() && cursor_.peek() != '\n') cursor_.skip();
      } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
        cursor_.skip();
      } else {
        return;
      }
    }
  }

  Result<std::string> read_name() {
    std::string name;
    for (; is_name_character(cursor_.peek()) && name.size() <= 256; cursor_.skip()) {
      name += cursor_.peek();
    }
    if (name.empty()) return cursor_.error("expected a name");
    if (name.size() > 256) return cursor_.error("a name of more than 256 bytes");
    return name;
  }

  NamedRule& rule_of(const std::string& name) {
    const auto [found, is_new] = rules_.try_emplace(name);
    if (is_new) found->second.id = tree_.declare_rule("rule \"" + name + "\"");
    return found->second;
  }

  Status read_rule() {
    ASSIGN_OR_RETURN(const std::string name, read_name());
    skip_space(false);
    if (!cursor_.take("::=")) return cursor_.error("expected ::=");
    skip_space(true);
    NamedRule& rule = rule_of(name);
    if (rule.is_defined) return cursor_.error(fmt::format("rule \"{}\" is there twice", name));
    rule.is_defined = true;
    ASSIGN_OR_RETURN(const GrammarNodeId body, read_alternatives(0));
    tree_.define_rule(rule.id, body);
    if (!cursor_.at_end() && cursor_.peek() != '\n' && cursor_.peek() != '\r') {
      return cursor_.error("expected the end of the line");
    }
    skip_space(true);
    return ok_status();
  }

  Result<GrammarNodeId> read_alternatives(std::size_t depth) {
    std::vector<GrammarNodeId> branches;
    do {
      skip_space(true);
      ASSIGN_OR_RETURN(const GrammarNodeId branch, read_sequence(depth));
      branches.push_back(branch);
    } while (take_bar());
    return tree_.alternatives(branches);
  }

  // Another alternative may begin on the next line.
  bool take_bar() {
    const TextCursor before = cursor_;
    skip_space(true);
    if (cursor_.take('|')) return true;
    cursor_ = before;
    return false;
  }

  Result<GrammarNodeId> read_sequence(std::size_t depth) {
    std::vector<GrammarNodeId> parts;
    while (!cursor_.at_end()) {
      const char c = cursor_.peek();
      if (c == '|' || c == ')' || c == '\n' || c == '\r') break;
      ASSIGN_OR_RETURN(GrammarNodeId part, read_element(depth));
      skip_space(depth > 0);
      for (int count = 0; is_quantifier(cursor_.peek()); ++count) {
        if (count == kQuantifiersMax) return cursor_.error("too many quantifiers");
        ASSIGN_OR_RETURN(part, read_quantifier(part));
        skip_space(depth > 0);
      }
      parts.push_back(part);
    }
    return tree_.sequence(parts);
  }

  static bool is_quantifier(char c) { return c == '*' || c == '+' || c == '?' || c == '{'; }

  Result<GrammarNodeId> read_quantifier(GrammarNodeId part) {
    if (cursor_.take('*')) return tree_.repeat(part, 0, kUnbounded);
    if (cursor_.take('+')) return tree_.repeat(part, 1, kUnbounded);
    if (cursor_.take('?')) return tree_.repeat(part, 0, 1);
    cursor_.skip();
    skip_space(true);
    std::optional<std::uint32_t> least = 0;
    if (cursor_.peek() != ',') least = cursor_.take_number();
    if (!least) return cursor_.error("expected a number of at most 7 digits");
    skip_space(true);
    std::optional<std::uint32_t> most = least;
    if (cursor_.take(',')) {
      skip_space(true);
      most = kUnbounded;
      if (cursor_.peek() != '}') most = cursor_.take_number();
      if (!most) return cursor_.error("expected a number of at most 7 digits");
      skip_space(true);
    }
    if (!cursor_.take('}')) return cursor_.error("expected }");
    if (*least > *most) return cursor_.error("the least count is above the most");
    return tree_.repeat(part, *least, *most);
  }

  Result<GrammarNodeId> read_element(std::size_t depth) {
    const char c = cursor_.peek();
    if (c == '"') return read_literal();
    if (c == '[') return read_class();
    if (cursor_.take('.')) return tree_.code_points(CodePointSet::all());
    if (c == '(') {
      if (depth >= kGroupDepthMax) {
        return cursor_.error(fmt::format("groups are nested deeper than {}", kGroupDepthMax));
      }
      cursor_.skip();
      ASSIGN_OR_RETURN(const GrammarNodeId inner, read_alternatives(depth + 1));
      skip_space(true);
      if (!cursor_.take(')')) return cursor_.error("expected )");
      return inner;
    }
    if (!is_name_character(c)) {
      return cursor_.error("expected a literal, a class, a rule's name or a group");
    }
    ASSIGN_OR_RETURN(const std::string name, read_name());
    return tree_.rule(rule_of(name).id);
  }

  // Reads one character of a literal or class.
  Result<std::uint32_t> read_character() {
    if (cursor_.at_end()) return cursor_.error("a literal or class without its end");
    if (!cursor_.take('\\')) return cursor_.take_code_point();
    const char letter = cursor_.peek();
    cursor_.skip();
    std::optional<std::uint32_t> code;
    switch (letter) {
      case 'x':
        code = cursor_.take_hex(2);
        break;
      case 'u':
        code = cursor_.take_hex(4);
        break;
      case 'U':
        code = cursor_.take_hex(8);
        break;
      case 't':
        return std::uint32_t{'\t'};
      case 'r':
        return std::uint32_t{'\r'};
      case 'n':
        return std::uint32_t{'\n'};
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<std::uint32_t>(letter);
      default:
        return cursor_.error("this escape is not supported");
    }
    const bool is_surrogate = code && *code >= 0xD800 && *code <= 0xDFFF;
    if (!code || *code > CodePointSet::kLast || is_surrogate) {
      return cursor_.error("expected the hexadecimal digits of a character");
    }
    return *code;
  }

  Result<GrammarNodeId> read_literal() {
    cursor_.skip();
    std::string bytes;
    while (!cursor_.take('"')) {
      ASSIGN_OR_RETURN(const std::uint32_t code, read_character());
      append_utf8(code, bytes);
    }
    return tree_.literal(bytes);
  }

  Result<GrammarNodeId> read_class() {
    cursor_.skip();
    const bool negated = cursor_.take('^');
    CodePointSet set;
    while (!cursor_.take(']')) {
      ASSIGN_OR_RETURN(const std::uint32_t first, read_character());
      std::uint32_t last = first;
      if (cursor_.peek() == '-' && cursor_.peek(1) != ']') {
        cursor_.skip();
        ASSIGN_OR_RETURN(last, read_character());
      }
      if (last < first) return cursor_.error("a range that ends before it begins");
      set.add(first, last);
    }
    set.normalise();
    return tree_.code_points(negated ? set.complement() : set);
  }

  TextCursor cursor_;
  GrammarTree& tree_;
  std::map<std::string, NamedRule> rules_;
};

}  // namespace

Result<GrammarNodeId> read_gbnf(std::string_view text, GrammarTree& tree) {
  if (text.size() > kGbnfBytesMax) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("has {} bytes, expected at most {}", text.size(), kGbnfBytesMax)};
  }
  if (!is_utf8(text)) return Error{ErrorCode::kInvalidArgument, "is not UTF-8"};
  return GbnfReader(text, tree).read_all();
}

}  // namespace pagoda::structured

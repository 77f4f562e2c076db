#include "structured/pattern_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "structured/text_cursor.h"

namespace pagoda::structured {
namespace {

const CodePointSet& digits() {
  static const CodePointSet kSet = CodePointSet::of({{'0', '9'}});
  return kSet;
}
const CodePointSet& word_characters() {
  static const CodePointSet kSet =
      CodePointSet::of({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  return kSet;
}
const CodePointSet& spaces() {
  static const CodePointSet kSet = CodePointSet::of({{9, 13},
                                                     {' ', ' '},
                                                     {0xA0, 0xA0},
                                                     {0x1680, 0x1680},
                                                     {0x2000, 0x200A},
                                                     {0x2028, 0x2029},
                                                     {0x202F, 0x202F},
                                                     {0x205F, 0x205F},
                                                     {0x3000, 0x3000}});
  return kSet;
}
// Blocks without decimal digits of any script, but for ASCII's.
const CodePointSet& other_than_digits() {
  static const CodePointSet kSet = CodePointSet::of(
      {{0, '0' - 1}, {'9' + 1, 0x65F}, {0x2000, 0x9FFF}, {0xAC00, 0xD7A3}, {0x1F300, 0x1FAFF}});
  return kSet;
}
// ASCII, general punctuation and currencies.
const CodePointSet& other_than_word_characters() {
  static const CodePointSet kSet = CodePointSet::of({{0, '0' - 1},
                                                     {'9' + 1, 'A' - 1},
                                                     {'Z' + 1, '_' - 1},
                                                     {'`', '`'},
                                                     {'z' + 1, 0x7F},
                                                     {0x2000, 0x206F},
                                                     {0x20A0, 0x20BF}});
  return kSet;
}
const CodePointSet& other_than_spaces() {
  static const CodePointSet kSet = [] {
    CodePointSet all = spaces();
    for (const CodePointRange& more :
         {CodePointRange{0x1C, 0x1F}, {0x85, 0x85}, {0xFEFF, 0xFEFF}}) {
      all.add(more.first, more.last);
    }
    all.normalise();
    return all.complement();
  }();
  return kSet;
}
const CodePointSet& line_ends() {
  static const CodePointSet kSet = CodePointSet::of({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
  return kSet;
}

// ECMA's \d and \w are ASCII, Python's are of all scripts: an escape has what both take. In a
// negated class (`wide`) it has what either takes, so that the class has what neither does.
std::optional<CodePointSet> class_escape(char letter, bool wide = false) {
  const auto chosen = [wide](const CodePointSet& narrow, const CodePointSet& negation) {
    return wide ? negation.complement() : narrow;
  };
  switch (letter) {
    case 'd':
      return chosen(digits(), other_than_digits());
    case 'D':
      return chosen(other_than_digits(), digits());
    case 'w':
      return chosen(word_characters(), other_than_word_characters());
    case 'W':
      return chosen(other_than_word_characters(), word_characters());
    case 's':
      return chosen(spaces(), other_than_spaces());
    case 'S':
      return chosen(other_than_spaces(), spaces());
    default:
      return std::nullopt;
  }
}

std::optional<std::uint32_t> control_escape(char letter) {
  constexpr std::string_view kEscapes = "t\tn\nr\rf\fv\v";
  for (std::size_t i = 0; i < kEscapes.size(); i += 2) {
    if (kEscapes[i] == letter) return static_cast<std::uint32_t>(kEscapes[i + 1]);
  }
  return std::nullopt;
}

std::uint32_t saturated(std::uint64_t count) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, kUnbounded));
}
std::uint32_t sum(std::uint32_t a, std::uint32_t b) { return saturated(std::uint64_t{a} + b); }
std::uint32_t product(std::uint32_t a, std::uint32_t b) { return saturated(std::uint64_t{a} * b); }

struct Quantifier {
  std::uint32_t least;
  std::uint32_t most;
};

class PatternReader {
 public:
  PatternReader(std::string_view pattern, PatternMatch match, CharacterForm form, GrammarTree& tree,
                const CodePointSet& left_out, bool measured)
      : cursor_(pattern),
        match_(match),
        form_(form),
        tree_(tree),
        left_out_(left_out),
        measured_(measured) {}

  Result<Pattern> read_all() {
    ASSIGN_OR_RETURN(Pattern pattern, read_alternatives(0));
    if (!cursor_.at_end()) return cursor_.error("a ) without its (");
    return pattern;
  }

 private:
  Result<Pattern> read_alternatives(std::size_t depth) {
    ASSIGN_OR_RETURN(Pattern all, read_sequence(depth));
    std::vector<GrammarNodeId> branches = {all.node};
    while (cursor_.take('|')) {
      ASSIGN_OR_RETURN(const Pattern branch, read_sequence(depth));
      // A branch without texts has no length.
      if (branch.node == tree_.never()) continue;
      if (branches.back() == tree_.never()) {
        all = branch;
        branches = {branch.node};
        continue;
      }
      branches.push_back(branch.node);
      all.least = std::min(all.least, branch.least);
      all.most = std::max(all.most, branch.most);
      all.run.reset();
    }
    all.node = tree_.alternatives(branches);
    return all;
  }

  bool at_sequence_end() const {
    return cursor_.at_end() || cursor_.peek() == '|' || cursor_.peek() == ')';
  }

  Result<Pattern> read_sequence(std::size_t depth) {
    const bool searches = match_ == PatternMatch::kSearch && depth == 0;
    bool open_before = searches;
    bool open_behind = searches;
    if (depth == 0 && cursor_.take('^')) open_before = false;
    std::vector<Pattern> terms;
    while (!at_sequence_end()) {
      if (cursor_.peek() == '$') {
        cursor_.skip();
        open_behind = false;
        if (depth == 0 && (cursor_.at_end() || cursor_.peek() == '|')) break;
        return cursor_.error("$ is supported at the end of an outermost alternative only");
      }
      ASSIGN_OR_RETURN(Pattern term, read_term(depth));
      terms.push_back(std::move(term));
    }
    const GrammarNodeId character = any_character();
    const Pattern anything = {tree_.repeat(character, 0, kUnbounded), 0, kUnbounded,
                              run_of(character)};
    if (open_before) terms.insert(terms.begin(), anything);
    if (open_behind) terms.push_back(anything);
    return joined(terms);
  }

  PatternRun run_of(GrammarNodeId character) const {
    return {tree_.empty(), character, tree_.empty(), 0};
  }

  Pattern joined(const std::vector<Pattern>& terms) {
    if (terms.size() == 1) return terms.front();
    Pattern all = {tree_.empty(), 0, 0};
    std::vector<GrammarNodeId> nodes;
    for (const Pattern& term : terms) {
      nodes.push_back(term.node);
      all.least = sum(all.least, term.least);
      all.most = sum(all.most, term.most);
    }
    all.node = tree_.sequence(nodes);
    all.run = joined_run(terms, nodes);
    return all;
  }

  // The run of the one term that has no fixed length, with the others around it.
  std::optional<PatternRun> joined_run(const std::vector<Pattern>& terms,
                                       const std::vector<GrammarNodeId>& nodes) {
    const auto is_flexible = [](const Pattern& term) { return term.least != term.most; };
    const auto found = std::find_if(terms.begin(), terms.end(), is_flexible);
    if (found == terms.end() || !found->run) return std::nullopt;
    if (std::any_of(found + 1, terms.end(), is_flexible)) return std::nullopt;
    PatternRun run = *found->run;
    for (auto term = terms.begin(); term != terms.end(); ++term) {
      if (term != found) run.fixed = sum(run.fixed, term->least);
    }
    const auto at = nodes.begin() + (found - terms.begin());
    std::vector<GrammarNodeId> before(nodes.begin(), at);
    before.push_back(run.before);
    std::vector<GrammarNodeId> behind = {run.behind};
    behind.insert(behind.end(), at + 1, nodes.end());
    run.before = tree_.sequence(before);
    run.behind = tree_.sequence(behind);
    return run;
  }

  GrammarNodeId any_character() {
    return marked(character_node(tree_, CodePointSet::all().without(left_out_), form_));
  }
  GrammarNodeId marked(GrammarNodeId node) { return measured_ ? tree_.character(node) : node; }

  Result<Pattern> read_term(std::size_t depth) {
    ASSIGN_OR_RETURN(Pattern atom, read_atom(depth));
    const bool is_character = atom.run && atom.least == 1 && atom.most == 1;
    ASSIGN_OR_RETURN(const std::optional<Quantifier> times, read_quantifier());
    if (!times) return atom;
    Pattern term = {tree_.repeat(atom.node, times->least, times->most),
                    product(atom.least, times->least), product(atom.most, times->most)};
    if (is_character) term.run = atom.run;
    // A repetition of what has no text has the empty one at most.
    if (term.node == tree_.empty()) return Pattern{term.node, 0, 0};
    return term;
  }

  Result<std::optional<Quantifier>> read_quantifier() {
    std::optional<Quantifier> times;
    if (cursor_.take('*')) {
      times = {0, kUnbounded};
    } else if (cursor_.take('+')) {
      times = {1, kUnbounded};
    } else if (cursor_.take('?')) {
      times = {0, 1};
    } else if (cursor_.take('{')) {
      ASSIGN_OR_RETURN(times, read_counts());
    }
    if (!times) return times;
    cursor_.take('?');
    if (cursor_.peek() == '*' || cursor_.peek() == '+' || cursor_.peek() == '?' ||
        cursor_.peek() == '{') {
      return cursor_.error("a second quantifier");
    }
    return times;
  }

  Result<std::optional<Quantifier>> read_counts() {
    const std::optional<std::uint32_t> least = cursor_.take_number();
    if (!least) return cursor_.error("{ wants a number of at most 7 digits; escape it to match it");
    std::optional<std::uint32_t> most = least;
    if (cursor_.take(',')) {
      most = kUnbounded;
      if (cursor_.peek() != '}') most = cursor_.take_number();
      if (!most) return cursor_.error("expected a number of at most 7 digits");
    }
    if (!cursor_.take('}')) return cursor_.error("expected }");
    if (*least > *most) return cursor_.error("the least count is above the most");
    return std::optional(Quantifier{*least, *most});
  }

  Error wants_left_out() const {
    return cursor_.error("wants a character that ends the value in this form of calls");
  }
  Result<Pattern> one_of(const CodePointSet& set) {
    const CodePointSet kept = set.without(left_out_);
    if (kept.empty() && !set.empty()) return wants_left_out();
    const GrammarNodeId node = marked(character_node(tree_, kept, form_));
    return Pattern{node, 1, 1, run_of(node)};
  }
  Result<Pattern> one(std::uint32_t code_point) {
    if (left_out_.contains(code_point)) return wants_left_out();
    std::string bytes;
    append_character(code_point, form_, bytes);
    const GrammarNodeId node = marked(tree_.literal(bytes));
    return Pattern{node, 1, 1, run_of(node)};
  }

  Result<Pattern> read_atom(std::size_t depth) {
    switch (cursor_.peek()) {
      case '(':
        return read_group(depth);
      case '[':
        return read_class();
      case '.':
        cursor_.skip();
        return one_of(line_ends().complement());
      case '\\':
        return read_escape();
      case '*':
      case '+':
      case '?':
      case '{':
        return cursor_.error("a quantifier without what it repeats");
      case '^':
        return cursor_.error("^ is supported at the beginning of an outermost alternative only");
      default:
        return one(cursor_.take_code_point());
    }
  }

  Result<Pattern> read_group(std::size_t depth) {
    if (depth >= kGroupDepthMax) {
      return cursor_.error(fmt::format("groups are nested deeper than {}", kGroupDepthMax));
    }
    cursor_.skip();
    if (cursor_.peek() == '?') {
      const bool named = cursor_.peek(1) == '<' && cursor_.peek(2) != '=' && cursor_.peek(2) != '!';
      if (cursor_.take("?P<") || (named && cursor_.take("?<"))) {
        while (!cursor_.at_end() && cursor_.peek() != '>') cursor_.take_code_point();
        if (!cursor_.take('>')) return cursor_.error("expected >");
      } else if (!cursor_.take("?:")) {
        return cursor_.error("this kind of group is not supported (look-around, flags)");
      }
    }
    ASSIGN_OR_RETURN(Pattern inner, read_alternatives(depth + 1));
    if (!cursor_.take(')')) return cursor_.error("expected )");
    return inner;
  }

  Result<Pattern> read_escape() {
    if (const std::optional<CodePointSet> set = class_escape(cursor_.peek(1))) {
      cursor_.skip(2);
      return one_of(*set);
    }
    ASSIGN_OR_RETURN(const std::uint32_t code_point, read_character_escape());
    return one(code_point);
  }

  // Reads from the backslash on.
  Result<std::uint32_t> read_character_escape() {
    cursor_.skip();
    const char letter = cursor_.peek();
    if (cursor_.at_end()) return cursor_.error("a \\ at the end");
    if (const std::optional<std::uint32_t> code = control_escape(letter)) {
      cursor_.skip();
      return *code;
    }
    if (letter == 'x' || letter == 'u') return read_hex_escape();
    const bool is_nul = letter == '0' && !(cursor_.peek(1) >= '0' && cursor_.peek(1) <= '9');
    if (is_nul) {
      cursor_.skip();
      return std::uint32_t{0};
    }
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_letter = byte >= 0x80 || word_characters().contains(byte);
    if (is_letter) return cursor_.error("this escape is not supported");
    cursor_.skip();
    return std::uint32_t{byte};
  }

  Result<std::uint32_t> read_hex_escape() {
    const bool is_byte = cursor_.take('x');
    if (!is_byte) cursor_.skip();
    if (!is_byte && cursor_.take('{')) {
      std::size_t digits = 0;
      while (cursor_.peek(digits) != '}' && digits < 7) ++digits;
      const std::optional<std::uint32_t> code =
          digits >= 1 && digits <= 6 ? cursor_.take_hex(digits) : std::nullopt;
      if (!code || *code > CodePointSet::kLast || !cursor_.take('}')) {
        return cursor_.error("expected 1 to 6 hexadecimal digits and }");
      }
      if (*code >= 0xD800 && *code <= 0xDFFF) return cursor_.error("a surrogate without its pair");
      return *code;
    }
    const std::optional<std::uint32_t> code = cursor_.take_hex(is_byte ? 2 : 4);
    if (!code) return cursor_.error("expected hexadecimal digits");
    if (*code < 0xD800 || *code > 0xDFFF) return *code;
    std::optional<std::uint32_t> low;
    if (*code < 0xDC00 && cursor_.take("\\u")) low = cursor_.take_hex(4);
    if (!low || *low < 0xDC00 || *low > 0xDFFF)
      return cursor_.error("a surrogate without its pair");
    return 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
  }

  struct ClassMember {
    CodePointSet set;
    std::optional<std::uint32_t> code_point;  // set: it may begin a range
  };

  Result<ClassMember> read_class_member(bool negated) {
    if (cursor_.peek() == '[') return cursor_.error("escape a [ within a class");
    if (cursor_.peek() != '\\') return ClassMember{{}, cursor_.take_code_point()};
    if (std::optional<CodePointSet> set = class_escape(cursor_.peek(1), negated)) {
      cursor_.skip(2);
      return ClassMember{*std::move(set), std::nullopt};
    }
    ASSIGN_OR_RETURN(const std::uint32_t code, read_character_escape());
    return ClassMember{{}, code};
  }

  Result<Pattern> read_class() {
    cursor_.skip();
    const bool negated = cursor_.take('^');
    CodePointSet set;
    if (cursor_.peek() == ']') return cursor_.error("an empty class; escape a ] to match it");
    while (!cursor_.take(']')) {
      if (cursor_.at_end()) return cursor_.error("expected ]");
      ASSIGN_OR_RETURN(const ClassMember first, read_class_member(negated));
      if (!first.code_point) {
        set.add(first.set);
        continue;
      }
      std::uint32_t last = *first.code_point;
      if (cursor_.peek() == '-' && cursor_.peek(1) != ']') {
        cursor_.skip();
        if (cursor_.at_end()) return cursor_.error("expected ]");
        ASSIGN_OR_RETURN(const ClassMember end, read_class_member(negated));
        if (!end.code_point) return cursor_.error("a range wants a character at its end");
        last = *end.code_point;
      }
      if (last < *first.code_point) return cursor_.error("a range that ends before it begins");
      set.add(*first.code_point, last);
    }
    set.normalise();
    return one_of(negated ? set.complement() : set);
  }

  TextCursor cursor_;
  PatternMatch match_;
  CharacterForm form_;
  GrammarTree& tree_;
  const CodePointSet& left_out_;
  bool measured_;
};

}  // namespace

Result<Pattern> read_pattern(std::string_view pattern, PatternMatch match, CharacterForm form,
                             GrammarTree& tree, const CodePointSet& left_out, bool measured) {
  if (pattern.size() > kPatternBytesMax) {
    return Error{ErrorCode::kOutOfRange, fmt::format("has {} bytes, expected at most {}",
                                                     pattern.size(), kPatternBytesMax)};
  }
  if (!is_utf8(pattern)) return Error{ErrorCode::kInvalidArgument, "is not UTF-8"};
  return PatternReader(pattern, match, form, tree, left_out, measured).read_all();
}

}  // namespace pagoda::structured

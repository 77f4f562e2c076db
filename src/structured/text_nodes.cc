#include "structured/text_nodes.h"

#include <cstdint>
#include <map>
#include <set>

#include "structured/character_form.h"
#include "structured/text_cursor.h"

namespace pagoda::structured {
namespace {

std::vector<std::uint32_t> code_points_of(std::string_view text) {
  std::vector<std::uint32_t> found;
  TextCursor cursor(text);
  while (!cursor.at_end()) found.push_back(cursor.take_code_point());
  return found;
}

CodePointSet single(std::uint32_t code_point) {
  return CodePointSet::of({{code_point, code_point}});
}

CodePointSet white_space() { return CodePointSet::of({{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}}); }

// Which beginnings of several texts a text ends with: the automaton of Aho and Corasick. A state is
// the longest one.
class MarkerStates {
 public:
  explicit MarkerStates(const std::vector<std::string>& texts) : states_(1) {
    for (const std::string& text : texts) add(code_points_of(text));
    std::vector<std::size_t> open = {0};
    for (std::size_t i = 0; i < open.size(); ++i) {
      const State& at = states_[open[i]];
      for (const auto& [code_point, child] : at.children) {
        open.push_back(child);
        if (open[i] == 0) continue;
        states_[child].fallback = next(at.fallback, code_point);
        states_[child].is_end = states_[child].is_end || states_[states_[child].fallback].is_end;
      }
    }
  }

  std::size_t size() const { return states_.size(); }
  // Whether one of the texts ends here.
  bool is_end(std::size_t state) const { return states_[state].is_end; }

  std::size_t next(std::size_t state, std::uint32_t code_point) const {
    while (true) {
      const auto found = states_[state].children.find(code_point);
      if (found != states_[state].children.end()) return found->second;
      if (state == 0) return 0;
      state = states_[state].fallback;
    }
  }

  // The code points of the texts, each once.
  const std::set<std::uint32_t>& alphabet() const { return alphabet_; }

 private:
  struct State {
    std::map<std::uint32_t, std::size_t> children = {};
    std::size_t fallback = 0;
    bool is_end = false;
  };

  void add(const std::vector<std::uint32_t>& text) {
    std::size_t at = 0;
    for (const std::uint32_t code_point : text) {
      alphabet_.insert(code_point);
      const auto [found, is_new] = states_[at].children.try_emplace(code_point, states_.size());
      at = found->second;
      if (is_new) states_.emplace_back();
    }
    states_[at].is_end = true;
  }

  std::vector<State> states_;
  std::set<std::uint32_t> alphabet_;
};

}  // namespace

std::string control_bytes(TokenId token) {
  const auto byte = [&](unsigned shift) {
    return static_cast<char>(token.value() >> shift & 0xFF);
  };
  return {kControlByte, byte(24), byte(16), byte(8), byte(0)};
}

GrammarNodeId any_text(GrammarTree& tree) {
  return tree.repeat(tree.code_points(CodePointSet::all()), 0, kUnbounded);
}

// The rules are states: each reads a character and goes on with another one, which takes no stack.
GrammarNodeId text_until(GrammarTree& tree, const TextMarker& marker, GrammarNodeId behind,
                         bool may_end, const std::vector<std::string>& avoided) {
  if (marker.bytes.empty()) return behind;
  const bool has_control = marker.bytes.find(kControlByte) != std::string::npos;
  std::vector<std::string> texts = avoided;
  if (has_control && !marker.spelling.empty()) texts.push_back(marker.spelling);
  if (!has_control) texts.push_back(marker.bytes);
  const MarkerStates states(texts);
  std::size_t marker_end = 0;  // the state in which a marker of text is whole
  for (const std::uint32_t code_point : code_points_of(has_control ? "" : marker.bytes)) {
    marker_end = states.next(marker_end, code_point);
  }
  const GrammarNodeId exit =
      has_control ? tree.sequence({tree.literal(marker.bytes), behind}) : tree.never();
  std::vector<RuleId> rules;
  for (std::size_t i = 0; i < states.size(); ++i) rules.push_back(tree.declare_rule());
  for (std::size_t state = 0; state < states.size(); ++state) {
    if (states.is_end(state)) continue;  // nobody gets there
    std::vector<GrammarNodeId> branches = {may_end ? tree.empty() : tree.never(), exit};
    CodePointSet others = CodePointSet::all();
    for (const std::uint32_t code_point : states.alphabet()) {
      const std::size_t next = states.next(state, code_point);
      if (next == 0) continue;
      others = others.without(single(code_point));
      const GrammarNodeId rest = states.is_end(next) ? (next == marker_end ? behind : tree.never())
                                                     : tree.rule(rules[next]);
      branches.push_back(tree.sequence({tree.code_points(single(code_point)), rest}));
    }
    branches.push_back(tree.sequence({tree.code_points(others), tree.rule(rules[0])}));
    tree.define_rule(rules[state], tree.alternatives(branches));
  }
  return tree.rule(rules[0]);
}

namespace {

// The texts that go on from state `at` of the trie of prefixes, which are read from its root on.
struct PrefixTrie {
  std::map<std::uint32_t, PrefixTrie> children = {};
  bool is_end = false;
};

GrammarNodeId not_within(GrammarTree& tree, const PrefixTrie& at, GrammarNodeId spaces) {
  if (at.is_end) return tree.never();
  CodePointSet others = CodePointSet::all();
  std::vector<GrammarNodeId> branches = {tree.empty(), spaces};
  if (spaces != tree.never()) others = others.without(white_space());
  for (const auto& [code_point, child] : at.children) {
    others = others.without(single(code_point));
    branches.push_back(tree.sequence(
        {tree.code_points(single(code_point)), not_within(tree, child, tree.never())}));
  }
  branches.push_back(tree.sequence({tree.code_points(others), any_text(tree)}));
  return tree.alternatives(branches);
}

}  // namespace

GrammarNodeId text_not_beginning(GrammarTree& tree, const std::vector<std::string>& prefixes) {
  PrefixTrie root;
  for (const std::string& prefix : prefixes) {
    PrefixTrie* at = &root;
    for (const std::uint32_t code_point : code_points_of(prefix)) at = &at->children[code_point];
    at->is_end = true;
  }
  const RuleId rule = tree.declare_rule();
  const GrammarNodeId spaces = tree.sequence({tree.code_points(white_space()), tree.rule(rule)});
  tree.define_rule(rule, not_within(tree, root, spaces));
  return tree.rule(rule);
}

}  // namespace pagoda::structured

#include "structured/text_nodes.h"

#include <algorithm>
#include <vector>

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

// How much of a marker a text ends with, as the automaton of Knuth, Morris and Pratt.
class MarkerStates {
 public:
  explicit MarkerStates(std::vector<std::uint32_t> marker)
      : marker_(std::move(marker)), fallback_(marker_.size(), 0) {
    for (std::size_t i = 1; i < marker_.size(); ++i) {
      fallback_[i] = next(fallback_[i - 1], marker_[i]);
    }
  }

  std::size_t size() const { return marker_.size(); }

  // Returns how much of the marker the text ends with after another code point; `state` is below
  // size().
  std::size_t next(std::size_t state, std::uint32_t code_point) const {
    while (state > 0 && marker_[state] != code_point) state = fallback_[state - 1];
    return marker_[state] == code_point ? state + 1 : 0;
  }

  // The code points of the marker, each once.
  std::vector<std::uint32_t> alphabet() const {
    std::vector<std::uint32_t> all = marker_;
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

 private:
  std::vector<std::uint32_t> marker_;
  std::vector<std::size_t> fallback_;
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
GrammarNodeId text_until(GrammarTree& tree, std::string_view marker, GrammarNodeId behind,
                         bool may_end) {
  if (marker.empty()) return behind;
  if (marker.find(kControlByte) != std::string_view::npos) {
    const GrammarNodeId rest = tree.sequence({tree.literal(marker), behind});
    return tree.sequence({any_text(tree), may_end ? tree.optional(rest) : rest});
  }
  const MarkerStates states(code_points_of(marker));
  std::vector<RuleId> rules;
  for (std::size_t i = 0; i < states.size(); ++i) rules.push_back(tree.declare_rule());
  for (std::size_t state = 0; state < states.size(); ++state) {
    std::vector<GrammarNodeId> branches = {may_end ? tree.empty() : tree.never()};
    CodePointSet others = CodePointSet::all();
    for (const std::uint32_t code_point : states.alphabet()) {
      const std::size_t next = states.next(state, code_point);
      if (next == 0) continue;
      others = others.without(single(code_point));
      branches.push_back(tree.sequence({tree.code_points(single(code_point)),
                                        next == states.size() ? behind : tree.rule(rules[next])}));
    }
    branches.push_back(tree.sequence({tree.code_points(others), tree.rule(rules[0])}));
    tree.define_rule(rules[state], tree.alternatives(branches));
  }
  return tree.rule(rules[0]);
}

GrammarNodeId text_not_beginning(GrammarTree& tree, std::string_view prefix) {
  const std::vector<std::uint32_t> code_points = code_points_of(prefix);
  GrammarNodeId node = tree.never();
  for (std::size_t i = code_points.size(); i-- > 0;) {
    const CodePointSet here = single(code_points[i]);
    const CodePointSet others = CodePointSet::all().without(here);
    node =
        tree.alternatives({tree.empty(), tree.sequence({tree.code_points(others), any_text(tree)}),
                           tree.sequence({tree.code_points(here), node})});
  }
  return node;
}

}  // namespace pagoda::structured

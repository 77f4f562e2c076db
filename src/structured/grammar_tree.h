// GrammarTree is a grammar while it is built: nodes in an arena, and rules that nodes refer to,
// also recursively. Readers of schemas, patterns and GBNF write it; program.h compiles it.
//
// A node's children exist before the node does. Nodes may be shared: a node stands for a language.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "structured/code_point_set.h"

namespace pagoda::structured {

using GrammarNodeId = std::uint32_t;
using RuleId = std::uint32_t;

inline constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();

// The most digits of an integer, and what a multiple's divisor is below: with three more digits any
// number can be made a multiple of it.
inline constexpr std::uint32_t kIntegerDigitsMax = 18;
inline constexpr std::uint32_t kMultipleOfMax = 512;
inline constexpr std::uint32_t kMultiplePlacesMax = 6;

enum class NodeKind : std::uint8_t {
  kNever,         // nothing matches
  kEmpty,         // the empty text
  kLiteral,       // bytes: texts[a]
  kChoice,        // one of the texts choices[a]
  kCodePoints,    // one code point of sets[a]
  kSequence,      // all children in order
  kAlternatives,  // one of the children
  kRepeat,        // the child, from a to b times
  kRule,          // rule a
  kString,        // a JSON string of a to b code points, with its quotes
  kOtherKey,      // a JSON string that is none of choices[a], with its quotes
  kMultiple,      // a multiple of a, above 0, in units of the last of b places behind the point,
                  // with up to kIntegerDigitsMax digits before it
  kCharacter,     // the child, which is one code point: what kMeasured counts
  kMeasured,      // those texts of the child that have from a to b times a kCharacter
  kCommit,        // the empty text: what leads here is the only way to go on from here
};

struct GrammarNode {
  NodeKind kind = NodeKind::kNever;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t first_child = 0;  // into children()
  std::uint32_t child_count = 0;
};

class GrammarTree {
 public:
  GrammarTree();

  GrammarNodeId never() const { return 0; }
  GrammarNodeId empty() const { return 1; }
  GrammarNodeId literal(std::string_view bytes);
  GrammarNodeId choice(std::vector<std::string> texts);
  GrammarNodeId code_points(CodePointSet set);  // normalised
  GrammarNodeId sequence(const std::vector<GrammarNodeId>& parts);
  GrammarNodeId alternatives(const std::vector<GrammarNodeId>& branches);
  // `most` may be kUnbounded.
  GrammarNodeId repeat(GrammarNodeId child, std::uint32_t least, std::uint32_t most);
  GrammarNodeId optional(GrammarNodeId child) { return alternatives({child, empty()}); }
  GrammarNodeId json_string(std::uint32_t least, std::uint32_t most);
  // The names as they stand between quotes, with escapes where JSON wants them.
  GrammarNodeId other_key(std::vector<std::string> names);

  // `divisor` is 2 to kMultipleOfMax, `places` 0 to kMultiplePlacesMax.
  GrammarNodeId multiple(std::uint32_t divisor, std::uint32_t places = 0) {
    return add({.kind = NodeKind::kMultiple, .a = divisor, .b = places});
  }

  GrammarNodeId character(GrammarNodeId code_point);
  // The child has no rules, and its characters are marked by character(); some text of it has a
  // length from `least` to `most` (text_lengths.h), which may be kUnbounded.
  GrammarNodeId measured(GrammarNodeId child, std::uint32_t least, std::uint32_t most) {
    return add({.kind = NodeKind::kMeasured, .a = least, .b = most}, {child});
  }

  // The empty text. A text that can be read up to here in one way goes on from here in no other
  // way: other alternatives that read the same text are over. It stands outside rules.
  GrammarNodeId commit() { return add({.kind = NodeKind::kCommit}); }

  // The name of rules that are declared without one, for errors: the part of the input that is
  // being read. It is short.
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  RuleId declare_rule() { return declare_rule(scope_); }
  // Declares a rule whose body follows; `name` is for errors.
  RuleId declare_rule(std::string name);
  void define_rule(RuleId rule, GrammarNodeId body);
  GrammarNodeId rule(RuleId rule);

  const std::vector<GrammarNode>& nodes() const { return nodes_; }
  const std::vector<GrammarNodeId>& children() const { return children_; }
  const std::vector<std::string>& texts() const { return texts_; }
  const std::vector<std::vector<std::string>>& choices() const { return choices_; }
  const std::vector<CodePointSet>& sets() const { return sets_; }
  const std::vector<GrammarNodeId>& rule_bodies() const { return rule_bodies_; }
  const std::vector<std::string>& rule_names() const { return rule_names_; }

  // Estimates the memory in use: what readers bound.
  std::uint64_t bytes() const { return bytes_; }

 private:
  GrammarNodeId add(GrammarNode node, const std::vector<GrammarNodeId>& children = {});

  std::vector<GrammarNode> nodes_;
  std::vector<GrammarNodeId> children_;
  std::vector<std::string> texts_;
  std::vector<std::vector<std::string>> choices_;
  std::vector<CodePointSet> sets_;
  std::vector<GrammarNodeId> rule_bodies_;
  std::vector<std::string> rule_names_;
  std::string scope_ = "#";
  std::uint64_t bytes_ = 0;
};

}  // namespace pagoda::structured

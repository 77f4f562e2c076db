#include "structured/grammar_facts.h"

#include <algorithm>
#include <span>

namespace pagoda::structured {
namespace {

std::span<const GrammarNodeId> children_of(const GrammarTree& tree, const GrammarNode& node) {
  return std::span(tree.children()).subspan(node.first_child, node.child_count);
}

// Edges from each node to those that depend on it: parents, and references to the rule it defines.
class Dependents {
 public:
  explicit Dependents(const GrammarTree& tree) : begins_(tree.nodes().size() + 2, 0) {
    visit(tree, [this](GrammarNodeId from, GrammarNodeId /*to*/) { ++begins_[from + 2]; });
    for (std::size_t i = 2; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    edges_.resize(begins_.back());
    visit(tree, [this](GrammarNodeId from, GrammarNodeId to) { edges_[begins_[from + 1]++] = to; });
  }

  std::span<const GrammarNodeId> of(GrammarNodeId node) const {
    return std::span(edges_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

 private:
  template <class Visit>
  static void visit(const GrammarTree& tree, const Visit& visit) {
    for (GrammarNodeId id = 0; id < tree.nodes().size(); ++id) {
      const GrammarNode& node = tree.nodes()[id];
      if (node.kind == NodeKind::kRule) visit(tree.rule_bodies()[node.a], id);
      for (const GrammarNodeId child : children_of(tree, node)) visit(child, id);
    }
  }

  std::vector<std::uint32_t> begins_;  // [node]: where its edges begin
  std::vector<GrammarNodeId> edges_;
};

// Whether the fact holds of a node without children: 1, 0.
using LeafFact = bool (*)(const GrammarNode& node);

bool leaf_is_productive(const GrammarNode& node) { return node.kind != NodeKind::kNever; }
bool leaf_is_nullable(const GrammarNode& node) {
  return node.kind == NodeKind::kEmpty || node.kind == NodeKind::kCommit;
}

// Holds of a sequence when it holds of all children, of other nodes when it holds of one.
std::vector<std::uint8_t> propagate(const GrammarTree& tree, const Dependents& dependents,
                                    LeafFact leaf) {
  const std::vector<GrammarNode>& nodes = tree.nodes();
  std::vector<std::uint8_t> holds(nodes.size(), 0);
  std::vector<std::uint32_t> missing(nodes.size(), 1);
  std::vector<GrammarNodeId> found;
  for (GrammarNodeId id = 0; id < nodes.size(); ++id) {
    const GrammarNode& node = nodes[id];
    if (node.kind == NodeKind::kSequence) missing[id] = node.child_count;
    const bool is_leaf = node.child_count == 0 && node.kind != NodeKind::kRule;
    const bool skippable = node.kind == NodeKind::kRepeat && node.a == 0;
    if (skippable || (is_leaf && leaf(node))) {
      holds[id] = 1;
      found.push_back(id);
    }
  }
  while (!found.empty()) {
    const GrammarNodeId id = found.back();
    found.pop_back();
    for (const GrammarNodeId dependent : dependents.of(id)) {
      if (holds[dependent] != 0 || --missing[dependent] != 0) continue;
      holds[dependent] = 1;
      found.push_back(dependent);
    }
  }
  return holds;
}

// Looks for a cycle of rules in which no byte is read, depth first without recursion: nodes of the
// walk are tree nodes, and a rule's body follows its reference.
class LeftRecursion {
 public:
  LeftRecursion(const GrammarTree& tree, const GrammarFacts& facts)
      : tree_(tree), facts_(facts), marks_(tree.nodes().size(), Mark::kNew) {}

  std::optional<RuleId> find() {
    for (RuleId rule = 0; rule < tree_.rule_bodies().size(); ++rule) {
      if (walk(tree_.rule_bodies()[rule])) return rule_of_cycle();
    }
    return std::nullopt;
  }

 private:
  enum class Mark : std::uint8_t { kNew, kOpen, kDone };

  struct Visit {
    GrammarNodeId node;
    std::uint32_t next;  // the next child
  };

  // The child at `index` that can stand at the node's beginning; nothing when there is no more.
  std::optional<GrammarNodeId> left_child(const GrammarNode& node, std::uint32_t index) const {
    if (node.kind == NodeKind::kRule) {
      return index == 0 ? std::optional(tree_.rule_bodies()[node.a]) : std::nullopt;
    }
    if (index >= node.child_count) return std::nullopt;
    const std::span<const GrammarNodeId> children = children_of(tree_, node);
    if (node.kind == NodeKind::kSequence && index > 0 &&
        facts_.nullable[children[index - 1]] == 0) {
      return std::nullopt;
    }
    return children[index];
  }

  // The walk ends with the node at which the cycle began; a cycle goes through a rule.
  RuleId rule_of_cycle() const {
    std::size_t at = open_.size() - 1;
    while (tree_.nodes()[open_[at].node].kind != NodeKind::kRule) --at;
    return tree_.nodes()[open_[at].node].a;
  }

  bool walk(GrammarNodeId root) {
    if (marks_[root] != Mark::kNew || facts_.productive[root] == 0) return false;
    open_.push_back({root, 0});
    marks_[root] = Mark::kOpen;
    while (!open_.empty()) {
      Visit& visit = open_.back();
      const std::optional<GrammarNodeId> child =
          left_child(tree_.nodes()[visit.node], visit.next++);
      if (!child) {
        marks_[visit.node] = Mark::kDone;
        open_.pop_back();
        continue;
      }
      if (facts_.productive[*child] == 0 || marks_[*child] == Mark::kDone) continue;
      if (marks_[*child] == Mark::kOpen) {
        open_.push_back({*child, 0});
        return true;
      }
      marks_[*child] = Mark::kOpen;
      open_.push_back({*child, 0});
    }
    return false;
  }

  const GrammarTree& tree_;
  const GrammarFacts& facts_;
  std::vector<Mark> marks_;
  std::vector<Visit> open_;
};

}  // namespace

GrammarFacts find_facts(const GrammarTree& tree) {
  const Dependents dependents(tree);
  GrammarFacts facts;
  facts.productive = propagate(tree, dependents, leaf_is_productive);
  facts.nullable = propagate(tree, dependents, leaf_is_nullable);
  facts.left_recursive = LeftRecursion(tree, facts).find();
  return facts;
}

}  // namespace pagoda::structured

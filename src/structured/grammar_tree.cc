#include "structured/grammar_tree.h"

#include <algorithm>
#include <utility>

namespace pagoda::structured {

GrammarTree::GrammarTree() {
  add({.kind = NodeKind::kNever});
  add({.kind = NodeKind::kEmpty});
}

GrammarNodeId GrammarTree::add(GrammarNode node, const std::vector<GrammarNodeId>& children) {
  node.first_child = static_cast<std::uint32_t>(children_.size());
  node.child_count = static_cast<std::uint32_t>(children.size());
  children_.insert(children_.end(), children.begin(), children.end());
  nodes_.push_back(node);
  bytes_ += sizeof(GrammarNode) + children.size() * sizeof(GrammarNodeId);
  return static_cast<GrammarNodeId>(nodes_.size() - 1);
}

GrammarNodeId GrammarTree::literal(std::string_view bytes) {
  if (bytes.empty()) return empty();
  texts_.emplace_back(bytes);
  bytes_ += sizeof(std::string) + bytes.size();
  return add({.kind = NodeKind::kLiteral, .a = static_cast<std::uint32_t>(texts_.size() - 1)});
}

GrammarNodeId GrammarTree::choice(std::vector<std::string> texts) {
  if (texts.empty()) return never();
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (texts.size() == 1) return literal(texts.front());
  if (texts.front().empty()) {
    texts.erase(texts.begin());
    return optional(choice(std::move(texts)));
  }
  for (const std::string& text : texts) bytes_ += sizeof(std::string) + text.size();
  choices_.push_back(std::move(texts));
  return add({.kind = NodeKind::kChoice, .a = static_cast<std::uint32_t>(choices_.size() - 1)});
}

GrammarNodeId GrammarTree::code_points(CodePointSet set) {
  if (set.empty()) return never();
  bytes_ += sizeof(CodePointSet) + set.ranges().size() * sizeof(CodePointRange);
  sets_.push_back(std::move(set));
  return add({.kind = NodeKind::kCodePoints, .a = static_cast<std::uint32_t>(sets_.size() - 1)});
}

GrammarNodeId GrammarTree::sequence(const std::vector<GrammarNodeId>& parts) {
  std::vector<GrammarNodeId> kept;
  for (const GrammarNodeId part : parts) {
    if (part == never()) return never();
    if (part != empty()) kept.push_back(part);
  }
  if (kept.empty()) return empty();
  return kept.size() == 1 ? kept.front() : add({.kind = NodeKind::kSequence}, kept);
}

GrammarNodeId GrammarTree::alternatives(const std::vector<GrammarNodeId>& branches) {
  std::vector<GrammarNodeId> kept;
  for (const GrammarNodeId branch : branches) {
    if (branch != never()) kept.push_back(branch);
  }
  if (kept.empty()) return never();
  return kept.size() == 1 ? kept.front() : add({.kind = NodeKind::kAlternatives}, kept);
}

GrammarNodeId GrammarTree::repeat(GrammarNodeId child, std::uint32_t least, std::uint32_t most) {
  if (least > most || (child == never() && least > 0)) return never();
  if (most == 0 || child == empty() || child == never()) return empty();
  if (least == 1 && most == 1) return child;
  if (least == 0 && most == 1) return optional(child);
  return add({.kind = NodeKind::kRepeat, .a = least, .b = most}, {child});
}

GrammarNodeId GrammarTree::character(GrammarNodeId code_point) {
  if (code_point == never()) return never();
  return add({.kind = NodeKind::kCharacter}, {code_point});
}

GrammarNodeId GrammarTree::json_string(std::uint32_t least, std::uint32_t most) {
  if (least > most) return never();
  return add({.kind = NodeKind::kString, .a = least, .b = most});
}

GrammarNodeId GrammarTree::other_key(std::vector<std::string> names) {
  if (names.empty()) return json_string(0, kUnbounded);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) bytes_ += sizeof(std::string) + name.size();
  choices_.push_back(std::move(names));
  return add({.kind = NodeKind::kOtherKey, .a = static_cast<std::uint32_t>(choices_.size() - 1)});
}

RuleId GrammarTree::declare_rule(std::string name) {
  bytes_ += sizeof(GrammarNodeId) + sizeof(std::string) + name.size();
  rule_bodies_.push_back(never());
  rule_names_.push_back(std::move(name));
  return static_cast<RuleId>(rule_bodies_.size() - 1);
}

void GrammarTree::define_rule(RuleId rule, GrammarNodeId body) { rule_bodies_[rule] = body; }

GrammarNodeId GrammarTree::rule(RuleId rule) { return add({.kind = NodeKind::kRule, .a = rule}); }

}  // namespace pagoda::structured

#include "structured/text_lengths.h"

#include <algorithm>
#include <vector>

namespace pagoda::structured {
namespace {

class TextLengths {
 public:
  using Lengths = std::vector<bool>;  // [length]

  TextLengths(const GrammarTree& tree, std::uint32_t most, std::uint64_t work_max)
      : tree_(tree), most_(most), work_max_(work_max) {}

  Lengths of(GrammarNodeId id) {
    const GrammarNode& node = tree_.nodes()[id];
    count(1);
    switch (node.kind) {
      case NodeKind::kNever:
        return Lengths(most_ + std::size_t{1}, false);
      case NodeKind::kCharacter:
        return only(1);
      case NodeKind::kSequence:
        return of_sequence(node);
      case NodeKind::kAlternatives:
        return of_alternatives(node);
      case NodeKind::kRepeat:
        return of_repeat(node);
      default:
        return only(0);
    }
  }
  std::uint64_t work() const { return work_; }
  bool is_exhausted() const { return work_ > work_max_; }

 private:
  Lengths only(std::uint32_t length) const {
    Lengths lengths(most_ + std::size_t{1}, false);
    if (length <= most_) lengths[length] = true;
    return lengths;
  }
  void count(std::uint64_t steps) { work_ += steps; }
  GrammarNodeId child(const GrammarNode& node, std::uint32_t index) const {
    return tree_.children()[node.first_child + index];
  }

  Lengths sums(const Lengths& a, const Lengths& b) {
    Lengths all(a.size(), false);
    for (std::size_t i = 0; i < a.size() && !is_exhausted(); ++i) {
      count(1);
      if (!a[i]) continue;
      count(a.size() - i);
      for (std::size_t k = 0; i + k < a.size(); ++k) {
        if (b[k]) all[i + k] = true;
      }
    }
    return all;
  }
  static void add(const Lengths& more, Lengths& all) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = all[i] || more[i];
  }

  Lengths of_sequence(const GrammarNode& node) {
    Lengths all = only(0);
    for (std::uint32_t i = 0; i < node.child_count && !is_exhausted(); ++i) {
      all = sums(all, of(child(node, i)));
    }
    return all;
  }
  Lengths of_alternatives(const GrammarNode& node) {
    Lengths all(most_ + std::size_t{1}, false);
    for (std::uint32_t i = 0; i < node.child_count && !is_exhausted(); ++i) {
      count(all.size());
      add(of(child(node, i)), all);
    }
    return all;
  }
  // More copies than there are characters add nothing, but for copies that are empty.
  Lengths of_repeat(const GrammarNode& node) {
    const Lengths one = of(child(node, 0));
    Lengths copies = only(0);
    Lengths all(copies.size(), false);
    for (std::uint32_t i = 0; !is_exhausted(); ++i) {
      if (i >= node.a) add(copies, all);
      if (i == node.b || i > std::uint64_t{node.a} + most_) break;
      const Lengths next = sums(copies, one);
      if (next == copies && i >= node.a) break;
      if (std::find(next.begin(), next.end(), true) == next.end()) break;
      copies = next;
    }
    return all;
  }

  const GrammarTree& tree_;
  std::uint32_t most_;
  std::uint64_t work_max_;
  std::uint64_t work_ = 0;
};

}  // namespace

std::optional<bool> has_length(const GrammarTree& tree, GrammarNodeId node, std::uint32_t least,
                               std::uint32_t most, std::uint64_t work_max, std::uint64_t& work) {
  // Every group of a pattern walks all lengths once.
  if (most > work_max / 1024) return std::nullopt;
  TextLengths lengths(tree, most, work_max);
  const TextLengths::Lengths all = lengths.of(node);
  work += lengths.work();
  if (lengths.is_exhausted()) return std::nullopt;
  return least <= most && std::find(all.begin() + least, all.end(), true) != all.end();
}

}  // namespace pagoda::structured

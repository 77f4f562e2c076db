#include "structured/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>

#include "structured/completion_depth.h"
#include "structured/grammar_facts.h"
#include "structured/measured_lengths.h"
#include "structured/string_automaton.h"
#include "structured/wide_characters.h"

namespace pagoda::structured {
namespace {

// Emits nodes from the end of the text to its beginning: each emission knows what follows it.
class ProgramEmitter {
 public:
  ProgramEmitter(const GrammarTree& tree, const GrammarFacts& facts) : tree_(tree), facts_(facts) {
    program_.code.push_back({.op = Op::kFail});
    return_ = add({.op = Op::kReturn});
    // A rule begins with a jump to its body, so that it has an address before it is emitted.
    for (std::size_t i = 0; i < tree.rule_bodies().size(); ++i) add({.op = Op::kFail});
  }

  Result<Program> emit_all(GrammarNodeId root) {
    for (RuleId rule = 0; rule < tree_.rule_bodies().size() && !too_large_; ++rule) {
      rule_ = rule;
      const Pc body = emit(tree_.rule_bodies()[rule], return_);
      program_.code[rule_entry(rule)] = {.op = Op::kJump, .next = body};
    }
    if (!too_large_) program_.entry = emit(root, return_);
    if (too_large_) {
      const std::string place = rule_ ? tree_.rule_names()[*rule_] + ": " : "";
      if (lengths_too_large_) {
        return Error{ErrorCode::kOutOfRange,
                     fmt::format("{}a pattern together with minLength or maxLength is too large: "
                                 "its characters times the length are more than {}",
                                 place, kLengthBitsMax)};
      }
      return Error{
          ErrorCode::kOutOfRange,
          fmt::format("{}the grammar needs more than {} instructions", place, kInstructionsMax)};
    }
    program_.depths = completion_depths(program_);
    if (has_commit_) mark_before_commit();
    return std::move(program_);
  }

 private:
  static constexpr Pc kFailPc = 0;
  // Nodes visited, as copies of a repeated node are: many may lead to few instructions.
  static constexpr std::uint64_t kEmissionStepsMax = 16 * kInstructionsMax;

  Pc rule_entry(RuleId rule) const { return return_ + 1 + rule; }

  Pc add(Instruction instruction) {
    if (program_.code.size() >= kInstructionsMax) {
      too_large_ = true;
      return kFailPc;
    }
    program_.code.push_back(instruction);
    return static_cast<Pc>(program_.code.size() - 1);
  }

  Pc add_split(std::vector<Pc> targets) {
    targets.erase(std::remove(targets.begin(), targets.end(), kFailPc), targets.end());
    if (targets.empty()) return kFailPc;
    if (targets.size() == 1) return targets.front();
    const auto first = static_cast<Pc>(program_.targets.size());
    program_.targets.insert(program_.targets.end(), targets.begin(), targets.end());
    return add(
        {.op = Op::kSplit, .next = first, .extra = static_cast<std::uint32_t>(targets.size())});
  }

  // Equal sets have one number.
  std::uint32_t add_set(const ByteSet& set) {
    const auto next = static_cast<std::uint32_t>(program_.sets.size());
    const auto [known, is_new] = sets_.try_emplace(set, next);
    if (is_new) program_.sets.push_back(set);
    return known->second;
  }

  Pc add_range(std::uint8_t low, std::uint8_t high, Pc next) {
    return add({.op = Op::kRange, .low = low, .high = high, .next = next});
  }

  Pc add_bytes(std::string_view bytes, Pc next) {
    for (auto at = bytes.rbegin(); at != bytes.rend(); ++at) {
      const auto byte = static_cast<std::uint8_t>(*at);
      next = add_range(byte, byte, next);
    }
    return next;
  }

  Pc emit(GrammarNodeId id, Pc next) {
    if (++steps_ > kEmissionStepsMax) too_large_ = true;
    if (too_large_ || facts_.productive[id] == 0 || next == kFailPc) return kFailPc;
    const GrammarNode& node = tree_.nodes()[id];
    switch (node.kind) {
      case NodeKind::kNever:
        return kFailPc;
      case NodeKind::kEmpty:
        return next;
      case NodeKind::kLiteral:
        return add_bytes(tree_.texts()[node.a], next);
      case NodeKind::kChoice:
        return emit_choice(tree_.choices()[node.a], 0, next);
      case NodeKind::kCodePoints:
        return emit_code_points(tree_.sets()[node.a], next);
      case NodeKind::kSequence:
        for (std::uint32_t i = node.child_count; i-- > 0;) next = emit(child(node, i), next);
        return next;
      case NodeKind::kAlternatives:
        return emit_alternatives(node, next);
      case NodeKind::kRepeat:
        return emit_repeat(node, next);
      case NodeKind::kRule:
        return emit_call(node, next);
      case NodeKind::kString:
        return emit_string(node, next);
      case NodeKind::kOtherKey:
        return emit_other_key(tree_.choices()[node.a], next);
      case NodeKind::kMultiple:
        return emit_multiple(node.a, node.b, next);
      case NodeKind::kCharacter:
        return emit_character(child(node, 0), next);
      case NodeKind::kMeasured:
        return emit_measured(node, next);
      case NodeKind::kCommit:
        has_commit_ = true;
        return add({.op = Op::kCommit, .next = next});
    }
    return kFailPc;
  }

  // Few rounds suffice: the successors of an instruction are emitted before it, except in loops and
  // rules.
  void mark_before_commit() {
    std::vector<bool>& marks = program_.before_commit;
    marks.resize(program_.code.size());
    const auto leads = [&](const Instruction& at) {
      if (at.op == Op::kCommit) return true;
      if (at.op == Op::kFail || at.op == Op::kReturn) return false;
      if (at.op != Op::kSplit) {
        const bool has_two = at.op == Op::kCall || at.op == Op::kCountLoop;
        return marks[at.next] || (has_two && marks[at.extra]);
      }
      const auto targets = std::span(program_.targets).subspan(at.next, at.extra);
      return std::any_of(targets.begin(), targets.end(), [&](Pc pc) { return marks[pc]; });
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (Pc pc = 0; pc < program_.code.size(); ++pc) {
        if (marks[pc] || !leads(program_.code[pc])) continue;
        marks[pc] = changed = true;
      }
    }
  }

  GrammarNodeId child(const GrammarNode& node, std::uint32_t index) const {
    return tree_.children()[node.first_child + index];
  }

  Pc emit_alternatives(const GrammarNode& node, Pc next) {
    std::vector<Pc> targets;
    for (std::uint32_t i = 0; i < node.child_count; ++i) {
      targets.push_back(emit(child(node, i), next));
    }
    return add_split(std::move(targets));
  }

  // A call whose return is a return is a jump: lists that are rules take no stack.
  Pc emit_call(const GrammarNode& node, Pc next) {
    if (next == return_) return rule_entry(node.a);
    return add({.op = Op::kCall, .next = rule_entry(node.a), .extra = next});
  }

  // Texts ascend and differ; those of the span share their first `depth` bytes.
  Pc emit_choice(std::span<const std::string> texts, std::size_t depth, Pc next) {
    // A tail that one text has alone is a chain: recursion is as deep as two texts are alike.
    if (texts.size() == 1) return add_bytes(std::string_view(texts.front()).substr(depth), next);
    std::size_t shared = depth;
    while (shared < texts.front().size() && texts.front()[shared] == texts.back()[shared]) ++shared;
    std::vector<Pc> targets;
    std::size_t begin = 0;
    if (texts.front().size() == shared) {
      targets.push_back(next);
      begin = 1;
    }
    while (begin < texts.size()) {
      std::size_t end = begin + 1;
      while (end < texts.size() && texts[end][shared] == texts[begin][shared]) ++end;
      targets.push_back(emit_choice(texts.subspan(begin, end - begin), shared, next));
      begin = end;
      if (too_large_) return kFailPc;
    }
    return add_bytes(std::string_view(texts.front()).substr(depth, shared - depth),
                     add_split(std::move(targets)));
  }

  // Emits a set that has all characters beyond ASCII, or all but the line separators.
  Pc emit_wide(const CodePointSet& set, bool separators, Pc next) {
    ByteSet single;
    for (std::uint32_t byte = 0; byte < 0x80; ++byte) single.set(byte, set.contains(byte));
    const std::uint32_t number = add_set(single);
    Pc first = kFailPc;
    for (std::uint8_t state = kWideWhole; state < kWideStates; ++state) {
      const Pc pc = add({.op = Op::kWide,
                         .low = state,
                         .high = static_cast<std::uint8_t>(separators ? 1 : 0),
                         .next = next,
                         .extra = number});
      if (state == kWideWhole) first = pc;
    }
    return too_large_ ? kFailPc : first;
  }

  Pc emit_code_points(const CodePointSet& set, Pc next) {
    const WideSet wide = wide_set(set);
    if (wide != WideSet::kNone) return emit_wide(set, wide == WideSet::kAll, next);
    ByteSet single;
    std::vector<Pc> targets;
    for (const Utf8Sequence& sequence : set.utf8_sequences()) {
      if (sequence.length == 1) {
        for (unsigned byte = sequence.low[0]; byte <= sequence.high[0]; ++byte) single.set(byte);
        continue;
      }
      Pc pc = next;
      for (std::uint32_t i = sequence.length; i-- > 0;) {
        pc = add_range(sequence.low[i], sequence.high[i], pc);
      }
      targets.push_back(pc);
    }
    if (single.any()) {
      targets.push_back(add({.op = Op::kSet, .next = next, .extra = add_set(single)}));
    }
    return add_split(std::move(targets));
  }

  Pc emit_repeat(const GrammarNode& node, Pc next) {
    const GrammarNodeId body = child(node, 0);
    if (facts_.productive[body] == 0)
      return next;  // the least is 0, or the node would match nothing
    const bool nullable = facts_.nullable[body] != 0;
    if (measures_) return emit_copies(body, node, next);
    if (node.b == kUnbounded && (node.a == 0 || nullable)) return emit_star(body, next);
    if (node.b == kUnbounded && node.a == 1) return emit(body, emit_star(body, next));
    // A nullable body needs no counter: each of its copies may match nothing.
    if (nullable) {
      for (std::uint32_t i = 0; i < node.b; ++i) {
        const Pc copy = emit(body, next);
        if (copy == next || too_large_) break;  // the body reads nothing, and so do all copies
        next = copy;
      }
      return next;
    }
    program_.bounds.push_back({node.a, node.b});
    const auto bounds = static_cast<std::uint32_t>(program_.bounds.size() - 1);
    const Pc loop = add({.op = Op::kCountLoop, .extra = next});
    const Pc step = add({.op = Op::kCountStep, .next = loop});
    program_.code[loop].next = emit(body, step);
    return add({.op = Op::kCount, .next = loop, .extra = bounds});
  }

  Pc emit_star(GrammarNodeId body, Pc next) {
    const Pc loop = add({.op = Op::kJump});
    if (too_large_) return kFailPc;
    const Pc split = add_split({emit(body, loop), next});
    program_.code[loop].next = split;
    return loop;
  }

  // Measured texts have no counters, so that what may follow an instruction is one set of lengths.
  Pc emit_copies(GrammarNodeId body, const GrammarNode& node, Pc next) {
    Pc copy = node.b == kUnbounded ? emit_star(body, next) : next;
    for (std::uint32_t i = node.a; i < node.b && node.b != kUnbounded && !too_large_; ++i) {
      copy = add_split({emit(body, copy), next});
    }
    for (std::uint32_t i = 0; i < node.a && !too_large_; ++i) copy = emit(body, copy);
    return copy;
  }

  Pc emit_character(GrammarNodeId code_point, Pc next) {
    const Pc body = emit(code_point, next);
    if (!measures_ || body == kFailPc) return body;
    characters_.push_back({add({.op = Op::kCharacter, .next = body}), next});
    return characters_.back().pc;
  }

  Pc emit_measured(const GrammarNode& node, Pc next) {
    const Pc end = add({.op = Op::kMeasured, .next = next});
    measures_ = true;
    characters_.clear();
    const Pc body = emit(child(node, 0), end);
    measures_ = false;
    if (body == kFailPc || too_large_) return kFailPc;
    const CountBounds bounds = {node.a, node.b};
    // A length costs a bit a character, and a look at the states that it leads to; so it does
    // where no character fits.
    const std::uint64_t width = characters_.size() + 1 + (program_.code.size() - end) / 64;
    length_steps_ += width * (std::uint64_t{node.b == kUnbounded ? node.a : node.b} + 64);
    if (length_steps_ > kLengthBitsMax) {
      lengths_too_large_ = too_large_ = true;
      return kFailPc;
    }
    find_lengths(program_, end, bounds, characters_);
    program_.bounds.push_back(bounds);
    return add({.op = Op::kMeasure,
                .next = body,
                .extra = static_cast<std::uint32_t>(program_.bounds.size() - 1)});
  }

  // The instructions of a string's body, one a state; returns that of kBody.
  Pc add_string_states(Op op, Pc next) {
    const Pc first = add({.op = op, .low = kBody, .next = next});
    for (std::uint8_t state = 1; state < kStringStates; ++state) {
      add({.op = op, .low = state, .next = next});
    }
    return too_large_ ? kFailPc : first;
  }

  Pc emit_string(const GrammarNode& node, Pc next) {
    const bool counted = node.a > 0 || node.b != kUnbounded;
    if (!counted) {
      Pc& body = free_strings_[next];
      if (body == 0) body = add_string_states(Op::kString, next);
      return add_range('"', '"', body);
    }
    const Pc body = add_string_states(Op::kCountedString, next);
    program_.bounds.push_back({node.a, node.b});
    const auto bounds = static_cast<std::uint32_t>(program_.bounds.size() - 1);
    return add_range('"', '"', add({.op = Op::kCount, .next = body, .extra = bounds}));
  }

  Pc emit_other_key(std::span<const std::string> names, Pc next) {
    const Pc body = add_string_states(Op::kString, next);
    return add_range('"', '"', emit_other(names, 0, kBody, body));
  }

  // Names ascend; those of the span share their first `depth` bytes, after which the automaton is
  // in `state`. An escape may spell a name's next character, so that none is allowed before the key
  // differs from all names.
  Pc emit_other(std::span<const std::string> names, std::size_t depth, std::uint8_t state,
                Pc body) {
    if (too_large_) return kFailPc;
    ByteSet except;
    except.set('\\');
    std::vector<Pc> targets;
    std::size_t begin = 0;
    if (names.front().size() == depth) {
      except.set('"');
      begin = 1;
    }
    while (begin < names.size()) {
      const auto byte = static_cast<std::uint8_t>(names[begin][depth]);
      std::size_t end = begin + 1;
      while (end < names.size() && names[end][depth] == names[begin][depth]) ++end;
      except.set(byte);
      const std::uint8_t after = string_automaton().next[state][byte];
      // A name with an escape is spelt otherwise by nobody: no key begins with a backslash.
      if (after < kStringStates && byte != '\\') {
        targets.push_back(add_range(
            byte, byte, emit_other(names.subspan(begin, end - begin), depth + 1, after, body)));
      }
      begin = end;
    }
    targets.push_back(
        add({.op = Op::kOtherString, .low = state, .next = body, .extra = add_set(except)}));
    return add_split(std::move(targets));
  }

  static std::uint8_t digit_byte(std::uint32_t digit) {
    return static_cast<std::uint8_t>('0' + digit);
  }

  // A digit behind remainder `at`: one branch a digit that leads somewhere.
  void add_digits(std::uint32_t divisor, std::uint32_t at, const std::vector<Pc>& to,
                  std::vector<Pc>& targets, std::uint32_t first = 0) {
    for (std::uint32_t digit = first; digit <= 9; ++digit) {
      const Pc next = to[(at * 10 + digit) % divisor];
      if (next == kFailPc) continue;
      targets.push_back(add_range(digit_byte(digit), digit_byte(digit), next));
    }
  }

  // Returns the end of a number, by the remainder of the digits before the point. `nought` gets
  // the whole of one whose digits before the point are 0, and which is not 0.
  std::vector<Pc> emit_places(std::uint32_t divisor, std::uint32_t places, Pc next, Pc& nought) {
    // ends[r]: behind as many places as were gone through, counted from the last one.
    std::vector<Pc> ends(divisor, kFailPc);
    ends[0] = next;
    nought = kFailPc;
    for (std::uint32_t left = 1; left <= places; ++left) {
      std::uint64_t power = 1;  // of ten
      for (std::uint32_t i = 0; i < left; ++i) power *= 10;
      std::vector<Pc> zeros;
      if (nought != kFailPc) zeros.push_back(add_range('0', '0', nought));
      add_digits(divisor, 0, ends, zeros, 1);
      nought = add_split(std::move(zeros));
      std::vector<Pc> longer(divisor);
      for (std::uint32_t remainder = 0; remainder < divisor; ++remainder) {
        std::vector<Pc> targets;
        add_digits(divisor, remainder, ends, targets);
        Pc point = add_split(std::move(targets));
        if (left == places && point != kFailPc) point = add_range('.', '.', point);
        const bool may_end = remainder * power % divisor == 0;
        longer[remainder] = add_split({may_end ? next : kFailPc, point});
      }
      ends = std::move(longer);
    }
    if (nought != kFailPc) nought = add_bytes("0.", nought);
    return ends;
  }

  // Digits by the remainder of those so far. All but the last three are counted: from any remainder
  // three digits lead to a multiple, so that no number ends at the limit without being one.
  Pc emit_multiple(std::uint32_t divisor, std::uint32_t places, Pc next) {
    constexpr std::uint32_t kLastDigits = 3;
    // tails[r]: up to so many digits as were gone through that make a multiple of remainder r.
    Pc nought = kFailPc;
    const std::vector<Pc> ends = emit_places(divisor, places, next, nought);
    std::vector<Pc> tails = ends;
    for (std::uint32_t i = 0; i < kLastDigits; ++i) {
      std::vector<Pc> longer(divisor);
      for (std::uint32_t remainder = 0; remainder < divisor; ++remainder) {
        std::vector<Pc> targets = {ends[remainder]};
        add_digits(divisor, remainder, tails, targets);
        longer[remainder] = add_split(std::move(targets));
      }
      tails = std::move(longer);
    }
    std::vector<Pc> loops;
    std::vector<Pc> steps;
    for (std::uint32_t i = 0; i < divisor; ++i) {
      loops.push_back(add({.op = Op::kCountLoop, .extra = tails[i]}));
      steps.push_back(add({.op = Op::kCountStep, .next = loops[i]}));
    }
    if (too_large_) return kFailPc;
    for (std::uint32_t i = 0; i < divisor; ++i) {
      std::vector<Pc> targets;
      for (std::uint32_t digit = 0; digit <= 9; ++digit) {
        targets.push_back(
            add_range(digit_byte(digit), digit_byte(digit), steps[(i * 10 + digit) % divisor]));
      }
      program_.code[loops[i]].next = add_split(std::move(targets));
    }
    program_.bounds.push_back({0, kIntegerDigitsMax - 1 - kLastDigits});
    const auto bounds = static_cast<std::uint32_t>(program_.bounds.size() - 1);
    std::vector<Pc> targets = {nought};
    for (std::uint32_t digit = 1; digit <= 9; ++digit) {
      const Pc count = add({.op = Op::kCount, .next = loops[digit % divisor], .extra = bounds});
      targets.push_back(add_range(digit_byte(digit), digit_byte(digit), count));
    }
    return add_split(std::move(targets));
  }

  const GrammarTree& tree_;
  const GrammarFacts& facts_;
  Program program_;
  Pc return_ = 0;
  bool too_large_ = false;
  bool lengths_too_large_ = false;
  std::uint64_t length_steps_ = 0;             // of all measured texts
  bool measures_ = false;                      // what is emitted is within a kMeasured
  std::vector<MeasuredCharacter> characters_;  // of it
  bool has_commit_ = false;
  std::uint64_t steps_ = 0;
  std::optional<RuleId> rule_;  // the last one that was emitted
  std::unordered_map<ByteSet, std::uint32_t> sets_;
  std::map<Pc, Pc> free_strings_;  // by what follows: bodies without a counter are shared
};

}  // namespace

Result<Program> compile_program(const GrammarTree& tree, GrammarNodeId root) {
  const GrammarFacts facts = find_facts(tree);
  if (facts.left_recursive) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: refers to itself before it reads anything",
                             tree.rule_names()[*facts.left_recursive])};
  }
  if (facts.productive[root] == 0) {
    return Error{ErrorCode::kInvalidArgument, "nothing matches"};
  }
  return ProgramEmitter(tree, facts).emit_all(root);
}

}  // namespace pagoda::structured

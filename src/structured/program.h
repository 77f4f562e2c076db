// Program is a grammar compiled to instructions for a pushdown machine over bytes (automaton.h).
//
// Sequences and alternatives are jumps; a rule is entered by kCall, which pushes where it returns
// to. Repetitions with bounds push a counter, so that a bound of 5000 costs no more than one of 5.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "structured/grammar_tree.h"

namespace pagoda::structured {

using Pc = std::uint32_t;
using ByteSet = std::bitset<256>;

enum class Op : std::uint8_t {
  kFail,
  // These read a byte.
  kRange,          // low to high, then next
  kSet,            // one of sets[extra], then next
  kWide,           // one of sets[extra] or a character beyond ASCII, in state `low` of
                   // wide_characters(), then next; where `high` is 0, without line separators
  kString,         // a string's body in state `low` of the automaton; next follows the quote
  kCountedString,  // the same, with the counter of its code points on the stack
  kOtherString,    // a byte that is not in sets[extra] and that the automaton takes in state `low`;
                   // next is the kString of state kBody
  // These do not.
  kJump,       // next
  kCommit,     // next, and every configuration that did not come through here is dropped
  kSplit,      // one of targets[next, next + extra)
  kCall,       // pushes extra as the return, then next
  kReturn,     // pops a return; the end where the stack is empty
  kCount,      // pushes the counter bounds[extra], then next
  kCountLoop,  // next while the counter has room; pops it and goes to extra where nothing is
               // missing
  kCountStep,  // counts one, then next
  kMeasure,    // pushes the measure bounds[extra], then next
  kCharacter,  // counts one on the measure, where the text behind the character can still have a
               // length that fits, then next; what it can have is row `extra` of lengths
  kMeasured,   // next where nothing is missing; pops the measure
};

struct Instruction {
  Op op = Op::kFail;
  std::uint8_t low = 0;
  std::uint8_t high = 0;
  Pc next = 0;
  std::uint32_t extra = 0;
};

// A counter counts down: how many are still missing, and for how many there is room. kUnbounded
// stays kUnbounded.
struct CountBounds {
  std::uint32_t missing = 0;
  std::uint32_t room = kUnbounded;
};

// The lengths of what may follow each character of measured texts, a row a kCharacter.
class LengthRows {
 public:
  // Adds a row for lengths below `columns`, none of which can follow yet.
  std::uint32_t add(std::uint32_t columns);
  void set(std::uint32_t row, std::uint32_t length);
  // Is there a length from `least` to `most`? A row that ends before `most` has no longer ones.
  bool has_any(std::uint32_t row, std::uint32_t least, std::uint32_t most) const;
  std::uint64_t bits() const { return std::uint64_t{64} * words_.size(); }

 private:
  struct Row {
    std::uint32_t first = 0;  // into words_
    std::uint32_t columns = 0;
  };

  std::vector<Row> rows_;
  std::vector<std::uint64_t> words_;
};
inline constexpr std::uint64_t kLengthBitsMax = std::uint64_t{1} << 24;

struct Program {
  std::vector<Instruction> code;
  std::vector<Pc> targets;
  std::vector<ByteSet> sets;
  std::vector<CountBounds> bounds;
  LengthRows lengths = {};
  Pc entry = 0;
  std::vector<std::uint32_t> depths;  // [pc]: completion_depth.h
  // [pc]: may a kCommit follow, within the same rule? Empty where there is none.
  std::vector<bool> before_commit = {};
};

inline constexpr std::size_t kInstructionsMax = std::size_t{1} << 18;

// The error names the rule that is left-recursive, or the limit that the grammar breaks, or says
// that nothing can match.
Result<Program> compile_program(const GrammarTree& tree, GrammarNodeId root);

}  // namespace pagoda::structured

// A parsed template: statements that hold expressions. The parser builds it, and nothing changes it
// afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/fault.h"

namespace pagoda::text::jinja {

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

enum class Operation : std::uint8_t {
  // Each comment says what `operands`, `name` and `arguments` hold.
  kLiteral,    // `literal`
  kName,       // name
  kList,       // items
  kTuple,      // items
  kDict,       // key, value, key, value, …
  kAttribute,  // object; name
  kSubscript,  // object, key
  kSlice,      // object, first, last, step; absent ones are null
  kCall,       // callee; arguments
  kFilter,     // subject, or null inside a filter block; name; arguments
  kTest,       // subject; name; arguments
  kNot,        // one operand, as for the two below
  kNegate,
  kPlus,
  kAnd,  // two operands, as for kOr
  kOr,
  kCondition,  // value, condition, other value or null
  kCompare,    // first, second, …; `comparisons` between them
  kAdd,        // two operands, as for all below
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kRemainder,
  kPower,
  kConcatenate,
};

enum class Comparison : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

using Literal = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

struct Argument {
  std::string name;  // empty for a positional argument
  ExpressionPointer value;
};

struct Expression {
  Operation operation;
  SourcePosition place;
  std::uint32_t height = 1;  // the height of its tree; bounded, because evaluation recurses
  Literal literal;
  std::string name;
  std::vector<ExpressionPointer> operands;
  std::vector<Argument> arguments;
  std::vector<Comparison> comparisons;
};

struct Statement;
using Block = std::vector<Statement>;

enum class StatementKind : std::uint8_t {
  kText,      // `text`
  kPrint,     // `value`
  kIf,        // `branches`, the last without a condition when there is an else
  kFor,       // `target`, `value`, `condition` or null, `body`, `otherwise`
  kSet,       // `target`, `value`
  kSetBlock,  // `target`, `body`, `value`: filters over the body, or null
  kMacro,     // `text` is its name; `parameters`, `body`
  kFilter,    // `value`: filters over the body; `body`
  kScope,     // `body`: a generation block
  kBreak,
  kContinue,
};

struct Branch;

struct Statement {
  StatementKind kind;
  SourcePosition place;
  std::string text;
  ExpressionPointer target;  // a name, an attribute of a namespace, or a tuple of these
  ExpressionPointer value;
  ExpressionPointer condition;
  std::vector<Argument> parameters;  // values are defaults; null where there is none
  std::vector<Branch> branches;
  Block body;
  Block otherwise;
};

struct Branch {
  ExpressionPointer condition;
  Block body;
};

}  // namespace pagoda::text::jinja

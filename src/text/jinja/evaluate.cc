// Evaluates expressions.
#include <fmt/format.h>

#include <utility>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"

namespace pagoda::text::jinja {

Value Interpreter::evaluate(const Expression& expression, Scope& scope) {
  try {
    const Heap::Level level(heap_);
    heap_.step();
    return evaluate_unplaced(expression, scope);
  } catch (Fault& fault) {
    if (!fault.place) fault.place = expression.place;
    throw;
  }
}

Value Interpreter::evaluate_unplaced(const Expression& expression, Scope& scope) {
  const auto operand = [&](std::size_t i) { return evaluate(*expression.operands[i], scope); };
  switch (expression.operation) {
    case Operation::kLiteral:
      return evaluate_literal(expression.literal);
    case Operation::kName:
      return evaluate_name(expression, scope);
    case Operation::kList:
    case Operation::kTuple:
    case Operation::kDict:
      return evaluate_collection(expression, scope);
    case Operation::kAttribute:
      return attribute(operand(0), expression.name, heap_);
    case Operation::kSubscript: {
      const Value object = operand(0);
      return subscript(object, operand(1), heap_);
    }
    case Operation::kSlice:
      return evaluate_slice(expression, scope);
    case Operation::kCall:
      return call(expression, scope);
    case Operation::kFilter: {
      const Value subject = operand(0);
      return apply_filter(expression.name, subject, evaluate_arguments(expression, scope), heap_);
    }
    case Operation::kTest: {
      const Value subject = operand(0);
      const Arguments arguments = evaluate_arguments(expression, scope);
      return Value::boolean(apply_test(expression.name, subject, arguments, heap_));
    }
    case Operation::kNot:
      return Value::boolean(!operand(0).truthy());
    case Operation::kNegate:
      return negate(operand(0));
    case Operation::kPlus:
      return affirm(operand(0));
    case Operation::kAnd: {
      const Value left = operand(0);
      return left.truthy() ? operand(1) : left;
    }
    case Operation::kOr: {
      const Value left = operand(0);
      return left.truthy() ? left : operand(1);
    }
    case Operation::kCondition:
      return evaluate_condition(expression, scope);
    case Operation::kCompare:
      return Value::boolean(evaluate_comparison(expression, scope));
    default: {
      const Value left = operand(0);
      return combine(expression.operation, left, operand(1), heap_);
    }
  }
}

Value Interpreter::evaluate_literal(const Literal& literal) {
  if (const auto* const flag = std::get_if<bool>(&literal)) return Value::boolean(*flag);
  if (const auto* const integer = std::get_if<std::int64_t>(&literal)) {
    return Value::integer(*integer);
  }
  if (const auto* const real = std::get_if<double>(&literal)) return Value::real(*real);
  if (const auto* const text = std::get_if<std::string>(&literal)) return heap_.text(*text);
  return Value::none();
}

Value Interpreter::evaluate_name(const Expression& expression, Scope& scope) {
  heap_.step(scope.depth() / 4);
  const Value* const found = scope.find(expression.name);
  return found != nullptr ? *found : Value::undefined(&expression.name);
}

Value Interpreter::evaluate_collection(const Expression& expression, Scope& scope) {
  std::vector<Value> items;
  items.reserve(expression.operands.size());
  for (const ExpressionPointer& item : expression.operands) items.push_back(evaluate(*item, scope));
  if (expression.operation != Operation::kDict) {
    return heap_.list(std::move(items), expression.operation == Operation::kTuple
                                            ? ListKind::kTuple
                                            : ListKind::kList);
  }
  const Value dict = heap_.dict();
  for (std::size_t i = 0; i < items.size(); i += 2) {
    dict.as_dict().set(items[i], items[i + 1], heap_);
  }
  return dict;
}

Value Interpreter::evaluate_slice(const Expression& expression, Scope& scope) {
  const auto part = [&](std::size_t i) {
    const Expression* const bound = expression.operands[i].get();
    return bound == nullptr ? Value::none() : evaluate(*bound, scope);
  };
  const Value object = part(0);
  const Value first = part(1);
  const Value last = part(2);
  return slice(object, first, last, part(3), heap_);
}

Value Interpreter::evaluate_condition(const Expression& expression, Scope& scope) {
  const bool holds = evaluate(*expression.operands[1], scope).truthy();
  const Expression* const chosen = expression.operands[holds ? 0 : 2].get();
  return chosen == nullptr ? heap_.undefined("the value of an 'if' without 'else'")
                           : evaluate(*chosen, scope);
}

bool Interpreter::evaluate_comparison(const Expression& expression, Scope& scope) {
  Value left = evaluate(*expression.operands[0], scope);
  for (std::size_t i = 0; i < expression.comparisons.size(); ++i) {
    const Value right = evaluate(*expression.operands[i + 1], scope);
    if (!compare(expression.comparisons[i], left, right, heap_)) return false;
    left = right;
  }
  return true;
}

Value Interpreter::evaluate_filters(const Expression& filter, const Value& subject, Scope& scope) {
  const Heap::Level level(heap_);
  const Expression* const inner = filter.operands[0].get();
  const Value value = inner == nullptr ? subject : evaluate_filters(*inner, subject, scope);
  return apply_filter(filter.name, value, evaluate_arguments(filter, scope), heap_);
}

Arguments Interpreter::evaluate_arguments(const Expression& expression, Scope& scope) {
  Arguments arguments;
  for (const Argument& argument : expression.arguments) {
    const Value value = evaluate(*argument.value, scope);
    if (argument.name.empty()) {
      arguments.positional.push_back(value);
    } else {
      arguments.named.emplace_back(argument.name, value);
    }
  }
  return arguments;
}

}  // namespace pagoda::text::jinja
